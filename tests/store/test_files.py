"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os

import pytest

from albatross.store import files
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


@pytest.mark.parametrize("name", ["a" * 255, "ü" * 127, "日" * 84])
def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path, name):
    for content in (b"old", b"new"):
        with replacing(tmp_path / name) as file:
            file.write(content)
    assert (tmp_path / name).read_bytes() == b"new"
    assert len(list(tmp_path.iterdir())) == 1
    assert files._hidden(tmp_path / name).encode()  # no character is cut


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


def test_an_error_names_the_file_that_was_to_be_written(tmp_path):
    path = tmp_path / "nowhere" / "page"
    with pytest.raises(FileNotFoundError) as caught:
        write_text(path, "new")
    assert caught.value.filename == str(path)
    assert "albatross-saving" not in str(caught.value)
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "page"):
        (tmp_path / "source").read_bytes()
    assert caught.value.filename == str(tmp_path / "source")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_regular_file_is_not_replaced_by_one(tmp_path, make):
    make(tmp_path / "other")
    (tmp_path / "link").symlink_to("other")
    for name in ("other", "link"):
        with pytest.raises(ValueError, match="other is a folder, a pipe or a device, not a regular file"):
            write_text(tmp_path / name, "new")
    assert not (tmp_path / "other").is_file()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "other"]
