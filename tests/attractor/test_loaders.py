"""Images from Parquet files and through `datasets`: the same pixels as from the embedded sample."""

import io

import datasets
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from PIL import Image

from spinformer.data import images as data


@pytest.fixture
def pictures():
    sample = data.load_images("sample")
    return {"train": sample.train[:12], "test": sample.test[:5]}


def png(image: torch.Tensor) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray((image[0] * 255).round().to(torch.uint8).numpy()).save(buffer, "PNG")
    return buffer.getvalue()


def test_parquet(tmp_path, pictures):
    for part, tensor in pictures.items():
        cells = [{"bytes": png(image), "path": None} for image in tensor]
        pyarrow.parquet.write_table(pyarrow.table({"image": cells}), tmp_path / f"{part}-00000-of-00001.parquet")
    found = data.load_images(str(tmp_path))
    torch.testing.assert_close(found.train, pictures["train"])
    torch.testing.assert_close(found.test, pictures["test"])
    assert set(found.digests) == {"train-00000-of-00001.parquet", "test-00000-of-00001.parquet"}


def test_parquet_without_a_test_part(tmp_path, pictures):
    cells = [{"bytes": png(image), "path": None} for image in pictures["train"]]
    pyarrow.parquet.write_table(pyarrow.table({"image": cells}), tmp_path / "train.parquet")
    with pytest.raises(FileNotFoundError, match=r"no test\*.parquet"):
        data.load_images(str(tmp_path))


def test_through_datasets(pictures, monkeypatch):
    """A data set as `datasets` gives it, without the network that the hub needs."""
    parts = {
        part: datasets.Dataset.from_dict(
            {"image": [{"bytes": png(image), "path": None} for image in tensor]},
            features=datasets.Features({"image": datasets.Image()}),
        )
        for part, tensor in pictures.items()
    }
    monkeypatch.setattr(datasets, "load_dataset", lambda name: datasets.DatasetDict(parts))
    found = data.load_images("hub:mnist")
    torch.testing.assert_close(found.train, pictures["train"])
    torch.testing.assert_close(found.test, pictures["test"])


def test_folder_of_pictures(tmp_path, pictures):
    for number, image in enumerate(pictures["train"]):
        (tmp_path / f"{number}.png").write_bytes(png(image))
    found = data.load_images(str(tmp_path))
    assert found.shape == (1, 28, 28)
    assert len(found.train) + len(found.test) == 12
    (tmp_path / "odd.png").write_bytes(png(torch.from_numpy(np.zeros((1, 5, 5), np.float32))))
    with pytest.raises(ValueError, match=r"odd.png has shape \(5, 5\)"):
        data.load_images(str(tmp_path))
