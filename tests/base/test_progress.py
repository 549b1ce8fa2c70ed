"""Progress bars, and progress that is told to a caller in place of one."""

import io
import sys
import threading

import pytest

from spinformer._base.progress import progress, progress_bar, reporting


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_items_come_through():
    assert list(progress(range(5), "work")) == list(range(5))
    bar = progress((n for n in range(3)), "work", total=5, done=2)
    assert (bar.total, bar.n) == (5, 2)
    assert list(bar) == [0, 1, 2]


def test_bars(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    bar = progress_bar(10, "work", unit="epoch", done=4, leave=True)
    assert (bar.total, bar.n, bool(bar.disable), bar.leave, bar.unit) == (10, 4, False, True, "epoch")
    bar.update()
    assert bar.n == 5
    bar.close()
    assert progress_bar(10, "work", quiet=True).disable
    assert progress_bar(10, "work", quiet=True, leave=True).disable


def test_each_item_is_told_before_it_comes(capfd):
    told = []
    with reporting(lambda done, total: told.append((done, total))):
        assert list(progress("abc", "letters")) == ["a", "b", "c"]
        assert list(progress(iter("abc"), "letters", total=5, done=2)) == ["a", "b", "c"]
        assert list(progress(iter("a"), "letters")) == ["a"]
    assert told == [(0, 3), (1, 3), (2, 3), (2, 5), (3, 5), (4, 5), (0, None)]
    list(progress("abc", "letters"))
    assert len(told) == 7
    assert capfd.readouterr().out == ""


def test_what_it_raises_ends_the_work():
    def stop(done, total):
        if done == 2:
            raise TimeoutError

    with reporting(stop):
        items = iter(progress(range(9), "numbers"))
        assert [next(items), next(items)] == [0, 1]
        with pytest.raises(TimeoutError):
            next(items)


def test_other_threads_are_not_told():
    told = []
    with reporting(lambda *how: told.append(how)):
        thread = threading.Thread(target=lambda: list(progress(range(3), "numbers", delay=9)))
        thread.start()
        thread.join()
    assert told == []
