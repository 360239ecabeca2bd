"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os

import pytest

from albatross.store.files import replacing, write_text


def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode(tmp_path):
    path = tmp_path / "page"
    path.write_text("old")
    path.chmod(0o640)
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in tmp_path.iterdir()] == ["page"]


def test_a_writer_that_fails_leaves_the_old_file(tmp_path):
    write_text(tmp_path / "page", "old")
    with pytest.raises(TypeError), replacing(tmp_path / "page") as file:
        file.writelines([b"half of", None])
    assert (tmp_path / "page").read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["page"]


def test_a_full_disk_is_said_in_words(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"^no room for .*page: free some space and try again$"):
        write_text(tmp_path / "page", "new")
    assert list(tmp_path.iterdir()) == []
