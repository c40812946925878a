import os
import stat
import threading
from pathlib import Path

import pytest

from serena_central.access.token import Token, obtain_token, read_token
from serena_central.core.errors import ConfigError
from serena_central.standalone import home
from serena_central.standalone.home import Unusable


def test_a_first_start_mints_a_token_that_only_its_user_can_read(tmp_path: Path) -> None:
    file = tmp_path / "token"
    old_mask = os.umask(0)
    try:
        token = obtain_token(file)
    finally:
        os.umask(old_mask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token.matches(file.read_bytes().strip())
    assert [entry.name for entry in tmp_path.iterdir()] == ["token"]


def test_later_starts_use_the_token_that_is_there(tmp_path: Path) -> None:
    file = tmp_path / "token"
    assert obtain_token(file).credential == obtain_token(file).credential == read_token(file).credential


def test_processes_that_start_together_agree_on_one_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    together = threading.Barrier(8)
    seen: list[str] = []

    def start() -> None:
        together.wait(5)
        seen.append(obtain_token(file).credential)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert len(seen) == 8
    assert len(set(seen)) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["token"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622])
def test_a_token_that_others_can_read_or_write_is_refused_and_the_message_says_what_to_do(
    tmp_path: Path, mode: int
) -> None:
    file = tmp_path / "token"
    obtain_token(file)
    file.chmod(mode)
    with pytest.raises(ConfigError, match=r"chmod 600"):
        obtain_token(file)


@pytest.mark.parametrize("content", [b"", b"short\n", b"x" * 600, b"has spaces in it and is quite long enough"])
def test_a_file_without_a_usable_token_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="does not contain a valid token"):
        obtain_token(file)


def test_a_folder_in_place_of_the_token_is_refused_in_words_by_each_reader(tmp_path: Path) -> None:
    (tmp_path / "token").mkdir()
    with pytest.raises(ConfigError, match="regular file"):
        obtain_token(tmp_path / "token")
    with pytest.raises(Unusable, match="regular file"):
        home.read_token(str(tmp_path / "token"))


def test_a_fifo_in_place_of_the_token_is_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    os.mkfifo(file, 0o600)
    with pytest.raises(ConfigError, match="regular file"):
        obtain_token(file)


def test_a_token_shows_its_credential_and_never_itself() -> None:
    token = Token(b"s" * 40)
    assert "ssss" not in repr(token)
    assert "ssss" not in token.credential
    assert token.header() == "Bearer " + "s" * 40
    assert token.matches(b"s" * 40)
    assert not token.matches(b"s" * 39)
