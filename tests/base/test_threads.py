"""`thread_map`: results in order, in threads of one core each, without a change that outlives it."""

import threading

import pytest
import torch

from spinformer._base.threads import thread_map


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield 3
    torch.set_num_threads(before)


def test_results_are_in_order_and_from_several_threads(threads):
    together = threading.Barrier(threads, timeout=30)

    def work(number):
        together.wait()  # passes only where all are there at once
        return number, torch.get_num_threads(), torch.is_grad_enabled()

    assert thread_map(work, [2, 0, 1]) == [(2, 1, False), (0, 1, False), (1, 1, False)]
    assert torch.get_num_threads() == threads
    assert torch.is_grad_enabled()


def test_within_itself_and_for_one_item_it_stays_in_its_thread(threads):
    def inner(_):
        return threading.get_ident()

    assert thread_map(inner, [0]) == [threading.get_ident()]
    assert thread_map(inner, []) == []
    for outer, own in thread_map(lambda _: (threading.get_ident(), thread_map(inner, [0, 1])), [0, 1]):
        assert own == [outer, outer]


def test_an_error_reaches_the_caller(threads):
    with pytest.raises(ZeroDivisionError):
        thread_map(lambda number: 1 // number, [1, 0])
    assert torch.get_num_threads() == threads
