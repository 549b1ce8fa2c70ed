"""The figures are drawn without a display, whatever the scores."""

import importlib

import pytest
import torch

from spinformer.evaluate import scores
from spinformer.evaluate.answers.figures import check_matplotlib, confusion_figure, reliability_figure


@pytest.mark.parametrize("draw", [confusion_figure, reliability_figure])
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_figures(draw, suffix, tmp_path):
    pytest.importorskip("matplotlib")
    result = scores(torch.randn(50, 3), torch.randint(2, (50,)), ("entailment", "neutral", "contradiction"))
    figure = draw(result, "drawn")
    assert "drawn" in figure.axes[0].get_title()
    path = tmp_path / f"figure.{suffix}"
    figure.savefig(path)
    assert path.stat().st_size > 1000


def test_what_the_figures_show():
    pytest.importorskip("matplotlib")
    result = scores([[3.0, 0.0], [0.0, 3.0], [3.0, 0.0]], [0, 1, 1], ("x", "y"))
    texts = [text.get_text() for text in confusion_figure(result).axes[0].texts]
    assert texts == ["1\n100.0%", "0\n0.0%", "1\n50.0%", "1\n50.0%"]
    above, below = reliability_figure(result).axes
    assert above.lines[1].get_ydata().tolist() == pytest.approx([2 / 3])
    assert [patch.get_height() for patch in below.patches] == [0] * 14 + [3]


def test_matplotlib_is_named_where_it_is_absent(monkeypatch):
    def absent(name, *rest):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return importlib.__import__(name, *rest)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(ModuleNotFoundError, match=r"spinformer\[plot\]"):
        check_matplotlib()
