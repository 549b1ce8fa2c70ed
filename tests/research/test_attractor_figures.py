"""The figures can be drawn from the results on file, also where states overflowed."""

import pytest
import torch
from safetensors.torch import save_file

from research.experiments import attractor_figures
from research.paths import RESULTS
from spinformer._base import records

pytestmark = pytest.mark.skipif(not (RESULTS / "attractor.json").is_file(), reason="results are not here")


def test_figures_are_drawn_even_where_states_overflowed(tmp_path):
    pytest.importorskip("matplotlib")
    tensors = {"clean": torch.rand(2, 1, 4, 4)}
    for model, steps in {"field-2": 20, "vit": 1}.items():  # all others are drawn as the first
        for task in ("masked", "noisy"):
            tensors[f"{model}.{task}.given"] = torch.rand(2, 1, 4, 4)
            tensors[f"{model}.{task}.restored"] = torch.rand(steps, 2, 1, 4, 4)
    tensors["field-2.masked.restored"][-1] = torch.nan
    outcome = records.read("attractor", RESULTS)["outcome"]
    with pytest.raises(FileNotFoundError, match="no examples at"):
        attractor_figures.draw(outcome, tmp_path)
    save_file(tensors, tmp_path / "examples.safetensors")
    paths = attractor_figures.draw(outcome, tmp_path)
    assert [path.name for path in paths] == ["figure-1.png", "figure-1-examples.png", "figure-2.png", "stored.png"]
    assert all(path.stat().st_size > 1000 for path in paths)
