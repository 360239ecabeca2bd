"""Compiled code is kept in a folder that only its user can write to, or nowhere."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from albatross import cache

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners and modes here")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty cache folder of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ALBATROSS_CACHE", raising=False)
    return tmp_path / "cache"


def test_the_folder_is_made_for_the_user_alone(home):
    folder = cache.private_folder("one")
    assert folder == home / "albatross" / "one"
    for made in (folder, folder.parent):
        assert made.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o722, 0o777])
@pytest.mark.parametrize("which", ["albatross", "albatross/one"])
def test_a_folder_that_others_may_write_to_is_not_used(home, which, mode):
    (home / which).mkdir(parents=True)
    (home / which).chmod(mode)
    assert cache.private_folder("one") is None


def test_a_folder_that_others_may_replace_is_not_used(home, monkeypatch):
    home.mkdir()
    home.chmod(0o777)
    assert cache.private_folder("one") is None
    home.chmod(0o775)
    monkeypatch.setattr(cache, "_is_own_group", lambda gid: False)
    assert cache.private_folder("one") is None
    monkeypatch.setattr(cache, "_is_own_group", lambda gid: True)
    assert cache.private_folder("one") == home / "albatross" / "one"
    home.chmod(0o1777)  # sticky, as /tmp: others can add to it, but replace nothing of ours
    assert cache.private_folder("one") == home / "albatross" / "one"


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("which", ["albatross", "albatross/one", "."])
def test_a_folder_of_somebody_else_is_not_used(home, which):
    (home / which).mkdir(parents=True)
    os.chown(home / which, 12_345, 12_345)
    assert cache.private_folder("one") is None


def test_a_link_is_not_taken_for_a_folder(home, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    home.mkdir()
    (home / "albatross").symlink_to(tmp_path / "elsewhere")
    assert cache.private_folder("one") is None


def test_a_read_only_folder_is_used(home, monkeypatch):
    folder = cache.private_folder("one")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write wherever the file system may be written
    assert cache.private_folder("one") == folder


def test_a_file_in_the_way_means_no_cache(home):
    home.mkdir()
    (home / "albatross").write_text("")
    assert cache.private_folder("one") is None


def test_albatross_cache_names_the_folder(home, tmp_path, monkeypatch):
    monkeypatch.setenv("ALBATROSS_CACHE", str(tmp_path / "own"))
    assert cache.private_folder("one") == tmp_path / "own" / "one"
    assert not home.exists()
    (tmp_path / "own").chmod(0o777)
    assert cache.private_folder("one") is None


def test_a_relative_folder_is_ignored_and_the_users_own_setting_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("ALBATROSS_CACHE", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.private_folder("one") == tmp_path / "home" / ".cache" / "albatross" / "one"
    monkeypatch.setenv("ALBATROSS_CACHE", "there")
    with pytest.warns(UserWarning, match="ALBATROSS_CACHE must be an absolute path, not 'there': it is ignored"):
        assert cache.private_folder("one") == tmp_path / "home" / ".cache" / "albatross" / "one"
    assert not (tmp_path / "here").exists()
    assert not (tmp_path / "there").exists()


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() != 0, reason="only root can become an unknown user")
def test_a_user_without_a_home_has_no_cache():
    without = {
        key: value for key, value in os.environ.items() if key not in ("HOME", "XDG_CACHE_HOME", "ALBATROSS_CACHE")
    }
    script = "import os; from albatross import cache; os.setuid(54_321); print(cache.private_folder('one'))"
    done = subprocess.run([sys.executable, "-c", script], env=without, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["None"], done.stderr
