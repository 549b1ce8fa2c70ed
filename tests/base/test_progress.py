"""Progress bars."""

import io
import sys

from spinformer._base.progress import progress, progress_bar


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
