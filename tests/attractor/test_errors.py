"""Bar 7: bad input is refused with what was expected and what came; and the forms that images come in."""

import gzip
import struct

import numpy as np
import pytest
import torch

from spinformer.attention import AttractorAttention
from spinformer.attractor import PatchEmbedding, hide_tokens
from spinformer.cli import main
from spinformer.data import images as data
from spinformer.models.attractor import AttractorConfig, AttractorNetwork


@pytest.fixture
def embedding() -> PatchEmbedding:
    return PatchEmbedding((1, 28, 28), 4)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda x: x[..., :27], ValueError, r"expected images of 1 x 28 x 28 .* got \(3, 1, 28, 27\)"),
        (lambda x: x.repeat(1, 3, 1, 1), ValueError, r"expected images of 1 x 28 x 28"),
        (lambda x: 255 * x, ValueError, r"expected pixels in 0\.\.1, got values from .* to 255"),
        (lambda x: x - 0.1, ValueError, r"expected pixels in 0\.\.1, got values from -0\.1"),
        (lambda x: x.index_fill(0, torch.tensor(1), float("nan")), ValueError, "784 that are NaN"),
        (lambda x: (255 * x).byte(), TypeError, "floating-point"),
    ],
)
def test_bad_images_are_refused(embedding, change, error, message):
    images = torch.linspace(0, 1, 3 * 784).view(3, 1, 28, 28)
    assert embedding.encode(images).shape == (3, 49, 32)
    with pytest.raises(error, match=message):
        embedding.encode(change(images))


def test_bad_networks_are_refused():
    with pytest.raises(ValueError, match="patch of side 5 does not divide images of 28 x 28"):
        PatchEmbedding((1, 28, 28), 5)
    with pytest.raises(ValueError, match="need at least 32 components, got 31"):
        PatchEmbedding((1, 28, 28), 4, 31)
    with pytest.raises(ValueError, match="shape is one of full, low-rank, relative, shared; got 'dense'"):
        AttractorAttention(4, 2, shape="dense")
    with pytest.raises(ValueError, match="grid of 12 sites"):
        AttractorAttention(12, 2, shape="relative", grid=(3, 3))
    with pytest.raises(ValueError, match="normalisation is one of sphere, layer, standard, none; got 'batch'"):
        AttractorAttention(4, 2, normalisation="batch")
    with pytest.raises(ValueError, match="expected a rank of at least 1, got 0"):
        AttractorAttention(4, 2, shape="shared", rank=0)
    with pytest.raises(ValueError, match="positive radius"):
        AttractorNetwork(AttractorConfig(radius=0.0))
    layer = AttractorAttention(4, 2)
    with pytest.raises(ValueError, match=r"expected spins \(batch, 4, 2\), got \(3, 5, 2\)"):
        layer.energy(torch.zeros(3, 5, 2))
    with pytest.raises(ValueError, match="boolean mask"):
        layer.step(torch.zeros(3, 4, 2), torch.zeros(3, 4))
    with pytest.raises(ValueError, match="fraction"):
        hide_tokens(3, 4, 1.0)


def test_a_network_survives_the_disk(tmp_path):
    network = AttractorNetwork(
        AttractorConfig(patch=7, shape="relative", reach=(1, 1), radius=0.1, normalisation="none")
    )
    digits = data.load_images("sample").train[:20]
    network.centre(digits)
    network.save(tmp_path / "net.safetensors")
    again = AttractorNetwork.load(tmp_path / "net.safetensors")
    assert again.config == network.config
    assert torch.equal(again.layer.step(again.spins(digits)), network.layer.step(network.spins(digits)))
    assert (again.images(again.spins(digits)) - digits).abs().max() < 1e-5
    full = AttractorNetwork(AttractorConfig(patch=7))
    full.save(tmp_path / "full.safetensors")
    assert AttractorNetwork.load(tmp_path / "full.safetensors").layer.pairs.storage()["weight"].is_contiguous()
    with pytest.raises(FileNotFoundError, match="no attractor network"):
        AttractorNetwork.load(tmp_path / "absent.safetensors")


def test_images_come_in_several_forms(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (20, 6, 8), dtype=np.uint8)
    idx = tmp_path / "idx"
    idx.mkdir()
    for name in ("train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz"):
        (idx / name).write_bytes(gzip.compress(b"\x00\x00\x08\x03" + struct.pack(">3I", 20, 6, 8) + pixels.tobytes()))
    np.savez(tmp_path / "a.npz", x_train=pixels, x_test=pixels[:3])
    pillow = pytest.importorskip("PIL.Image")
    folder = tmp_path / "folder"
    folder.mkdir()
    for k, picture in enumerate(pixels):
        pillow.fromarray(picture).save(folder / f"{k:02}.png")
    expected = torch.from_numpy(pixels).float()[:, None] / 255
    assert torch.equal(data.load_images(str(idx)).train, expected)
    assert torch.equal(data.load_images(str(tmp_path / "a.npz")).test, expected[:3])
    pictures = data.load_images(str(folder))
    assert (len(pictures.train), len(pictures.test), pictures.shape) == (18, 2, (1, 6, 8))
    pillow.fromarray(pixels[0, :5]).save(folder / "99.png")
    with pytest.raises(ValueError, match=r"99\.png has shape \(5, 8\), the first picture \(6, 8\)"):
        data.load_images(str(folder))
    (idx / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"\x00\x00\x08\x03" + struct.pack(">3I", 20, 6, 9)))
    with pytest.raises(ValueError, match="says it holds"):
        data.load_images(str(idx))
    with pytest.raises(FileNotFoundError, match="no images at"):
        data.load_images(str(tmp_path / "nowhere"))


def test_the_sample_is_mnist():
    sample = data.load_images("sample")
    assert (len(sample.train), len(sample.test), sample.shape) == (8000, 2000, (1, 28, 28))
    assert 0.1 < sample.train.mean().item() < 0.16
    with pytest.raises(ValueError, match=r"expected 1 to 8000 images of .*; got 9000"):
        sample.cut(9000)


@pytest.mark.usefixtures("few_dynamics")
def test_train_and_retrieve_from_the_command_line(tmp_path, capsys):
    network = tmp_path / "net.safetensors"
    options = ["--limit", "100", "--epochs", "1", "--patch", "4", "--device", "cpu", "--output", str(network)]
    assert main(["train", "attractor", *options]) == 0
    assert main(["retrieve", str(network), "--count", "3", "--steps", "2", "--output", str(tmp_path / "out")]) == 0
    for name in ("trajectory.png", "trajectory.gif", "energies.json"):
        assert (tmp_path / "out" / name).stat().st_size > 0
    capsys.readouterr()
    assert main(["train", "attractor", *options, "--patch", "5"]) == 2
    assert "patch of side 5 does not divide" in capsys.readouterr().err
