"""The state of a run on file, and the random numbers of a step."""

import pytest
import torch

from spinformer.training.checkpoint import Checkpoint, differences, tensor_fingerprint
from spinformer.training.seeding import step_generator, step_seed

RUN = {"options": {"seed": 0, "layers": (0, 3), "game": {"heads": 4}}, "texts": "abc", "model": "m"}


def test_what_is_written_is_read(tmp_path):
    checkpoint = Checkpoint(tmp_path / "new" / "state.pt", RUN)
    assert checkpoint.read() is None
    checkpoint.write({"step": 3, "weights": {"a": torch.arange(4.0)}, "losses": [0.5]})
    state = Checkpoint(tmp_path / "new" / "state.pt", RUN).read()
    assert state.keys() == {"step", "weights", "losses"}
    assert (state["step"], state["losses"]) == (3, [0.5])
    assert torch.equal(state["weights"]["a"], torch.arange(4.0))
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["state.pt"]


@pytest.mark.parametrize(
    ("run", "named"),
    [
        ({**RUN, "texts": "abd"}, "texts"),
        ({**RUN, "options": {**RUN["options"], "seed": 1, "game": {"heads": 2}}}, "options.seed, options.game.heads"),
        ({**RUN, "images": "x"}, "images"),
        ({"texts": "abc", "options": RUN["options"]}, "model"),
    ],
)
def test_another_run_is_refused_by_what_differs(tmp_path, run, named):
    path = tmp_path / "state.pt"
    Checkpoint(path, RUN).write({"step": 1})
    with pytest.raises(ValueError, match="belongs to another run; these differ: ") as raised:
        Checkpoint(path, run).read()
    assert str(raised.value) == f"{path} belongs to another run; these differ: {named}"


def test_files_of_other_versions_and_objects_are_not_read(tmp_path):
    path = tmp_path / "state.pt"
    for content in ({"run": repr(RUN)}, {"step": 3}):
        torch.save(content, path)
        with pytest.raises(ValueError, match=r"state\.pt was not written by this version; remove it to begin anew"):
            Checkpoint(path, RUN).read()
    torch.save({"run": "{}", "state": Checkpoint(None, {})}, path)
    with pytest.raises(ValueError, match=r"state\.pt is damaged \(Weights only load failed.*; remove it to begin anew"):
        Checkpoint(path, {}).read()


def test_an_interrupt_is_written_and_raised_again(tmp_path):
    checkpoint = Checkpoint(tmp_path / "state.pt", RUN)

    def stopped(error):
        with checkpoint.written_on_interrupt(lambda: {"step": 5}):
            raise error

    with pytest.raises(SystemExit):
        stopped(SystemExit)
    assert checkpoint.read() is None
    with pytest.raises(KeyboardInterrupt):
        stopped(KeyboardInterrupt)
    assert checkpoint.read() == {"step": 5}


def test_no_path_is_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoint = Checkpoint(None, RUN)
    checkpoint.write({"step": 1})
    assert checkpoint.read() is None
    assert not list(tmp_path.iterdir())


def test_differences():
    assert differences({"a": 1, "b": {"c": 2, "d": 3}}, {"a": 1, "b": {"c": 2, "d": 3}}) == []
    assert differences({"a": 1, "b": {"c": 2}}, {"a": 2, "b": {"c": 3}}) == ["a", "b.c"]
    assert differences({"a": {"b": 1}}, {"a": 1}) == ["a"]


def test_fingerprints_are_of_values_and_shape():
    x = torch.rand(3, 4)
    assert tensor_fingerprint(x) == tensor_fingerprint(x.clone().T.contiguous().T)
    others = (x + 0.1, x.reshape(4, 3), x.double(), x[:2])
    assert len({tensor_fingerprint(one) for one in (x, *others)}) == 5


def test_draws_of_a_step():
    assert (step_seed(2, 5), step_seed(2, 5, 1 << 32)) == (2_000_011, 2**33 + 5)
    draws = [torch.rand(4, generator=step_generator(seed, step)) for seed in (0, 1) for step in (0, 1)]
    assert torch.equal(draws[0], torch.rand(4, generator=step_generator(0, 0)))
    assert len({tuple(one.tolist()) for one in draws}) == 4
