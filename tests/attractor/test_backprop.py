"""The transformer baselines: an interrupted run that is resumed ends at the weights of one that was not."""

import pytest
import torch

from spinformer.models.attractor import RecurrentTransformer, VisionTransformer
from spinformer.training.attractor.backprop import BackpropRecipe, train_transformer

SHAPE = (1, 8, 8)


def images() -> torch.Tensor:
    return torch.rand(50, *SHAPE, generator=torch.Generator().manual_seed(0))


def build(kind: type[VisionTransformer]) -> VisionTransformer:
    torch.manual_seed(5)
    options = {} if kind is RecurrentTransformer else {"depth": 2}
    return kind(SHAPE, 4, width=16, heads=2, **options)


@pytest.mark.parametrize("task", ["masked", "noisy"])
@pytest.mark.parametrize("kind", [RecurrentTransformer, VisionTransformer])
def test_interrupted_and_resumed_ends_at_the_same_weights(kind, task, tmp_path):
    recipe = BackpropRecipe(task, epochs=3, batch=16)
    whole = build(kind)
    history = train_transformer(whole, images(), recipe, quiet=True)
    checkpoint = tmp_path / "run.pt"

    def stop(epoch: int) -> None:
        if epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_transformer(build(kind), images(), recipe, checkpoint=checkpoint, on_epoch=stop, quiet=True)
    again = build(kind)
    assert train_transformer(again, images(), recipe, checkpoint=checkpoint, quiet=True) == history
    assert len(history) == 3
    for ours, theirs in zip(again.parameters(), whole.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    with pytest.raises(ValueError, match="belongs to another run; these differ: images"):
        train_transformer(build(kind), images()[:40], recipe, checkpoint=checkpoint, quiet=True)


def test_the_block_is_repeated_and_its_trajectory_ends_where_forward_does():
    model = build(RecurrentTransformer).eval()
    assert isinstance(model, RecurrentTransformer)
    mask = torch.zeros(4, 4, dtype=torch.bool)
    mask[:, 1] = True
    with torch.no_grad():
        path = model.trajectory(images()[:4], mask, 4)
        assert len(path) == 4
        assert torch.equal(path[2], model(images()[:4], mask, steps=3))
        other = images()[:4].clone()
        other[:, :, :4, 4:] = 0.123  # the hidden patch: what stands there must not matter
        assert torch.equal(model(other, mask), model(images()[:4], mask))


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="3 heads do not divide a width of 16"):
        VisionTransformer(SHAPE, 4, width=16, heads=3)
