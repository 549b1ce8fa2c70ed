"""The two tasks and the trivial predictors, on images small enough to work out by hand."""

import pytest
import torch

from spinformer.attractor import PatchEmbedding
from spinformer.data.corruption import Corrupted, corrupt, trivial_errors, visible_neighbours

ROWS = torch.tensor([[0.0, 0.3, 0.6], [0.9, 0.5, 0.1], [0.2, 0.4, 0.8]])


def hidden(*pixels: tuple[int, int]) -> torch.Tensor:
    mask = torch.zeros(1, 1, 3, 3, dtype=torch.bool)
    for row, column in pixels:
        mask[0, 0, row, column] = True
    return mask


def masked(image: torch.Tensor, judged: torch.Tensor) -> Corrupted:
    return Corrupted(image, image.masked_fill(judged, 0.0), judged.flatten(1), judged)


def test_a_hidden_pixel_is_the_mean_of_its_visible_neighbours():
    image = ROWS[None, None]
    centre = hidden((1, 1))
    assert visible_neighbours(image.masked_fill(centre, 0), centre)[0, 0, 1, 1].item() == pytest.approx(3.3 / 8)
    pair = hidden((0, 0), (1, 1))
    restored = visible_neighbours(image.masked_fill(pair, 0), pair)
    assert restored[0, 0, 0, 0].item() == pytest.approx((0.3 + 0.9) / 2)
    assert restored[0, 0, 1, 1].item() == pytest.approx(3.3 / 7)


def test_the_square_grows_until_something_is_visible():
    all_but_one = hidden(*((i, j) for i in range(3) for j in range(3) if (i, j) != (2, 2)))
    restored = visible_neighbours(ROWS[None, None].masked_fill(all_but_one, 0), all_but_one)
    assert torch.allclose(restored, torch.full_like(restored, 0.8))


def test_channels_do_not_mix():
    image = torch.stack((ROWS, 1 - ROWS))[None]
    centre = hidden((1, 1)).expand(1, 2, 3, 3)
    restored = visible_neighbours(image.masked_fill(centre, 0), centre)
    assert restored[0, :, 1, 1].tolist() == pytest.approx([3.3 / 8, 1 - 3.3 / 8])


def test_errors_of_the_masked_task():
    mean = torch.full((1, 3, 3), 0.4)
    errors = trivial_errors(masked(ROWS[None, None], hidden((1, 1), (0, 2))), mean)
    assert errors["zero"] == pytest.approx((0.25 + 0.36) / 2)
    assert errors["mean image"] == pytest.approx((0.01 + 0.04) / 2)
    centre, corner = (0.0 + 0.3 + 0.9 + 0.1 + 0.2 + 0.4 + 0.8) / 7, (0.3 + 0.1) / 2
    assert errors["visible neighbours"] == pytest.approx(((centre - 0.5) ** 2 + (corner - 0.6) ** 2) / 2)
    assert set(errors) == {"zero", "mean image", "visible neighbours"}


def test_errors_of_the_noisy_task():
    clean = torch.zeros(1, 1, 3, 3)
    given = torch.zeros(1, 1, 3, 3)
    given[0, 0, 1, 1], given[0, 0, 0, 0] = 1.8, -0.9
    seen = Corrupted(clean, given, None, torch.ones_like(clean, dtype=torch.bool))
    errors = trivial_errors(seen, torch.full((1, 3, 3), 0.5))
    assert errors["zero"] == 0
    assert errors["mean image"] == pytest.approx(0.25)
    assert errors["corrupted"] == pytest.approx((1.8**2 + 0.9**2) / 9)
    assert errors["corrupted, clipped to 0..1"] == pytest.approx(1 / 9)
    # the centre is in all nine windows of 3 x 3, the corner in four of them: 0.1 there, 0.2 in the five others
    assert errors["3 x 3 average"] == pytest.approx((4 * 0.1**2 + 5 * 0.2**2) / 9)
    assert "visible neighbours" not in errors


def test_masked_images_lack_whole_patches():
    cutter = PatchEmbedding((1, 4, 8), 2)
    images = torch.rand(5, 1, 4, 8, generator=torch.Generator().manual_seed(0)) + 0.01
    seen = corrupt(images.clamp(max=1), "masked", cutter, generator=torch.Generator().manual_seed(1))
    assert seen.mask is not None
    assert seen.mask.sum(1).tolist() == [2] * 5  # 30% of 8 patches, rounded
    assert torch.equal(seen.judged, cutter.hide(seen.mask))
    assert seen.given[seen.judged].abs().max() == 0
    assert torch.equal(seen.given[~seen.judged], seen.clean[~seen.judged])
    assert seen.error(seen.clean) == 0


def test_noisy_images_keep_their_variance_and_are_judged_everywhere():
    cutter = PatchEmbedding((1, 4, 4), 2)
    images = torch.rand(3, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    seen = corrupt(images, "noisy", cutter, generator=torch.Generator().manual_seed(1))
    assert seen.mask is None
    assert seen.judged.all()
    assert torch.allclose(seen.given.var((1, 2, 3)), images.var((1, 2, 3)), rtol=1e-4)
    with pytest.raises(ValueError, match="task must be one of masked, noisy; got 'blurred'"):
        corrupt(images, "blurred", cutter, generator=torch.Generator())
