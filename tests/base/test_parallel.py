"""Work on several processes."""

import os

import pytest
import torch

from spinformer._base.parallel import cores, parallel_map, run_tasks


@pytest.mark.parametrize("processes", [1, 3, 50])
def test_results_come_in_order(processes):
    scale = 3  # a closure
    assert list(parallel_map(lambda part: scale * part, range(20), processes=processes)) == [
        3 * part for part in range(20)
    ]


def test_several_processes_work():
    assert os.getpid() in set(parallel_map(lambda part: os.getpid(), range(4), processes=1))
    assert os.getpid() not in set(parallel_map(lambda part: os.getpid(), range(4), processes=2))
    assert cores() >= 1


@pytest.mark.parametrize("processes", [1, 2])
def test_errors_come_back(processes):
    def fail(part):
        raise ValueError(f"part {part} is bad")

    with pytest.raises(ValueError, match="part 0 is bad"):
        list(parallel_map(fail, range(2), processes=processes))
    assert list(parallel_map(fail, [], processes=processes)) == []


def describe(number):
    """What a task sees: who does it, with how many threads, and what comes of it."""
    return os.getpid(), torch.get_num_threads(), 10 // number


@pytest.mark.parametrize("processes", [1, 2])
def test_run_tasks(processes):
    finish = dict(run_tasks(describe, [(0,), (5,)], processes=processes))
    assert sorted(finish) == [0, 1]
    with pytest.raises(ZeroDivisionError):
        finish[0]()
    process, threads, result = finish[1]()  # is not lost
    assert result == 2
    assert (process == os.getpid()) == (processes == 1)
    if processes > 1:
        assert threads == max(1, cores() // processes)
