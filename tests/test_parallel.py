"""Work spread over processes."""

import os

import pytest
import torch

from spinformer.parallel import cores, separately, spread


@pytest.mark.parametrize("processes", [1, 3, 50])
def test_results_come_in_order(processes):
    scale = 3  # a closure
    assert list(spread(lambda part: scale * part, range(20), processes=processes)) == [3 * part for part in range(20)]


def test_several_processes_work():
    assert os.getpid() in set(spread(lambda part: os.getpid(), range(4), processes=1))
    assert os.getpid() not in set(spread(lambda part: os.getpid(), range(4), processes=2))
    assert cores() >= 1


@pytest.mark.parametrize("processes", [1, 2])
def test_what_goes_wrong_there_is_told_here(processes):
    def fail(part):
        raise ValueError(f"part {part} is bad")

    with pytest.raises(ValueError, match="part 0 is bad"):
        list(spread(fail, range(2), processes=processes))
    assert list(spread(fail, [], processes=processes)) == []


def told(number):
    """What a task sees: who does it, with how many threads, and what comes of it."""
    return os.getpid(), torch.get_num_threads(), 10 // number


@pytest.mark.parametrize("processes", [1, 2])
def test_tasks_that_run_separately(processes):
    finish = dict(separately(told, [(0,), (5,)], processes=processes))
    assert sorted(finish) == [0, 1]
    with pytest.raises(ZeroDivisionError):
        finish[0]()
    process, threads, result = finish[1]()  # is not lost
    assert result == 2
    assert (process == os.getpid()) == (processes == 1)
    if processes > 1:
        assert threads == max(1, cores() // processes)
