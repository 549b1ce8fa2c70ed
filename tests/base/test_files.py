"""Files are there whole or not at all."""

import os

import pytest

from spinformer._base.files import atomic_write


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
