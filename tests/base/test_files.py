"""Files are there whole or not at all."""

import os
import shutil
import stat
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from spinformer._base import records
from spinformer._base.files import atomic_files, atomic_write, json_object, regular, sha256


@pytest.mark.parametrize("many", [False, True])
def test_a_file_takes_its_place_when_it_is_written(tmp_path, many):
    path = tmp_path / "new" / "file.txt"
    for text in ("one", "two"):
        before = path.read_text() if path.exists() else None
        with atomic_write(path, many=many) as partial:
            partial.write_text(text)
            assert partial.parent == path.parent
            assert str(os.getpid()) in partial.name or not many
            assert (path.read_text() if path.exists() else None) == before
        assert path.read_text() == text
        assert list(path.parent.iterdir()) == [path]


def test_what_fails_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("whole")

    def stopped():
        with atomic_write(path) as partial:
            partial.write_text("ha")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]  # nothing half-written is left


def test_links_folders_and_pipes(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to(real)
    with atomic_write(link) as partial:
        partial.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    with pytest.raises(IsADirectoryError, match="is a folder; expected a file to write"), atomic_write(tmp_path):
        pass
    with atomic_write(tmp_path / ".." / tmp_path.name / "x.txt") as partial:
        partial.write_text("x")
    assert (tmp_path / "x.txt").read_text() == "x"
    link.unlink()
    link.symlink_to(link.name)
    with pytest.raises(OSError, match="link\\.txt"), atomic_write(link):
        pass


def test_files_that_belong_together(tmp_path):
    folder = tmp_path / "new"

    def write(text, *, fails=False):
        with atomic_files(folder) as written:
            for name in ("a.json", "b.safetensors", "within/c.txt"):
                (written / name).parent.mkdir(exist_ok=True)
                (written / name).write_text(text)
            if fails:
                raise OSError(28, "No space left on device")

    def found():
        return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}

    write("one")
    assert found() == dict.fromkeys(("a.json", "b.safetensors", "within/c.txt"), "one")
    with pytest.raises(OSError, match="No space left"):
        write("two", fails=True)
    assert set(found().values()) == {"one"}
    abandoned, used = folder / ".saving-abandoned", folder / ".saving-used"
    for path in (abandoned, used):
        path.mkdir()
        (path / "half").write_text("h")
    with FileLock(used / ".lock"):
        write("three")
        assert not abandoned.exists()
        assert (used / "half").is_file()
    shutil.rmtree(used)
    assert found() == dict.fromkeys(("a.json", "b.safetensors", "within/c.txt"), "three")


@pytest.mark.skipif(os.name == "nt", reason="has no pipes in folders")
def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path):
    """Some writers rename a file of their own to the name that they are given."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    with atomic_write(pipe) as partial:
        assert partial != pipe
        (tmp_path / "other").write_text("whole")
        shutil.move(tmp_path / "other", partial)
    reader.join()
    assert got == [b"whole"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.skipif(os.name == "nt", reason="has no pipes in folders")
def test_pipes_devices_and_folders_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for read in (regular, sha256, json_object):
        with pytest.raises(ValueError, match="is a pipe or a device; expected a file"):
            read(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a pipe or a device; expected a file"):
        regular(Path("/dev/zero"))
    with pytest.raises(ValueError, match="is a folder; expected a file"):
        regular(tmp_path)
    assert regular(tmp_path / "none") == tmp_path / "none"  # the reader says that there is nothing


def test_json_objects_and_records(tmp_path):
    path = tmp_path / "result.json"
    for content, said in (
        ("{", "is damaged, it is not JSON"),
        ("[" * 100_000, "is damaged, it is not JSON"),
        ("[1]", "expected a JSON object; got list"),
        ('{"a": 1}', "is no record of a result: expected an object under config and outcome"),
        ('{"config": {}, "outcome": [1]}', "expected an object under outcome"),
    ):
        path.write_text(content)
        with pytest.raises(ValueError, match=said) as raised:
            records.read("result", tmp_path)
        assert str(path) in str(raised.value)
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ValueError, match="it is not JSON"):
        json_object(path)
