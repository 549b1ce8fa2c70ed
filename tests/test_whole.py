"""Files are there whole or not at all."""

import os

import pytest

from spinformer.whole import whole


@pytest.mark.parametrize("many", [False, True])
def test_a_file_takes_its_place_when_it_is_written(tmp_path, many):
    path = tmp_path / "new" / "file.txt"
    for text in ("one", "two"):
        before = path.read_text() if path.exists() else None
        with whole(path, many=many) as partial:
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
        with whole(path) as partial:
            partial.write_text("ha")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert path.read_text() == "whole"
