"""Links that work once, and browsers that are in until they leave, are too old, or the token is another."""

import threading
from pathlib import Path

import pytest

from serena_central.access import browsers as module
from serena_central.access.browsers import LINK_LIFE_S, MOST_LINKS, MOST_LOGINS, Browsers


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def browsers(tmp_path: Path, clock: Clock) -> Browsers:
    return Browsers(tmp_path / "browsers.json", "c" * 32, clock=clock)


def header(browsers: Browsers, secret: str) -> bytes:
    return f"other=1; {browsers.cookie_name}={secret}; more=2".encode()


def test_a_link_is_used_up_by_its_first_use(browsers: Browsers) -> None:
    key = browsers.invite()
    assert browsers.enter(key)
    assert browsers.enter(key) is None
    assert browsers.enter("invented") is None
    assert browsers.enter("\ud800") is None


def test_a_link_and_a_login_end_with_their_time(browsers: Browsers, clock: Clock) -> None:
    old, young = browsers.invite(), browsers.invite()
    clock.now += LINK_LIFE_S - 1
    secret = browsers.enter(young)
    assert secret
    clock.now += 1
    assert browsers.enter(old) is None
    login = browsers.login(header(browsers, secret))
    assert login
    clock.now = login.expires_at - 0.5
    assert browsers.login(header(browsers, secret))
    clock.now = login.expires_at
    assert browsers.login(header(browsers, secret)) is None


def test_logins_are_kept_for_the_next_run_as_digests_alone(tmp_path: Path, browsers: Browsers, clock: Clock) -> None:
    secret = browsers.enter(browsers.invite())
    assert secret
    browsers.save()
    assert secret not in (tmp_path / "browsers.json").read_text()
    again = Browsers(tmp_path / "browsers.json", "c" * 32, clock=clock)
    assert again.login(header(again, secret)) == browsers.login(header(browsers, secret))
    other = Browsers(tmp_path / "browsers.json", "d" * 32, clock=clock)
    assert other.login(header(other, secret)) is None


def test_a_slow_save_does_not_bring_back_a_browser_that_left_meanwhile(
    tmp_path: Path, browsers: Browsers, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = browsers.admit()
    write_whole, later = module.write_whole, threading.Thread(target=browsers.save)

    def slow(path: Path, data: bytes) -> None:
        if later.ident is None:
            login = browsers.login(header(browsers, secret))
            assert login
            browsers.leave(login)
            later.start()
            later.join(0.2)  # it has to wait for this save
        write_whole(path, data)

    monkeypatch.setattr(module, "write_whole", slow)
    browsers.save()
    later.join()
    again = Browsers(tmp_path / "browsers.json", "c" * 32, clock=clock)
    assert again.login(header(again, secret)) is None


def test_who_leaves_is_out_and_others_stay(browsers: Browsers) -> None:
    one, other = browsers.enter(browsers.invite()), browsers.enter(browsers.invite())
    assert one
    assert other
    login = browsers.login(header(browsers, one))
    assert login
    browsers.leave(login)
    assert browsers.login(header(browsers, one)) is None
    assert browsers.login(header(browsers, other))


def test_every_browser_has_a_csrf_token_of_its_own(browsers: Browsers) -> None:
    secrets = [browsers.enter(browsers.invite()) or "" for _ in range(2)]
    logins = [browsers.login(header(browsers, secret)) for secret in secrets]
    assert len({login.csrf for login in logins if login}) == 2
    assert not {login.csrf for login in logins if login} & set(secrets)


def test_cookies_of_the_same_name_from_elsewhere_keep_nobody_out(browsers: Browsers) -> None:
    secret = browsers.enter(browsers.invite())
    assert secret
    planted = [header(browsers, f"planted-{number}") for number in range(150)]
    for cookies in ([*planted, header(browsers, secret)], [header(browsers, secret), *planted]):
        login = browsers.login(b"; ".join(cookies))
        assert login == browsers.login(header(browsers, secret)) is not None
    assert browsers.login(b"; ".join(planted)) is None
    assert browsers.login(b"; ".join(planted * 100 + [header(browsers, secret)])) is None  # work is bounded
    assert browsers.login(b"") is None
    assert browsers.login(b"\xff\xfe=;;=\x00") is None


def test_what_is_remembered_is_bounded(browsers: Browsers) -> None:
    oldest = browsers.invite()
    for _ in range(MOST_LINKS):
        browsers.invite()
    assert browsers.enter(oldest) is None
    first = browsers.enter(browsers.invite())
    assert first
    for _ in range(MOST_LOGINS):
        browsers.enter(browsers.invite())
    assert browsers.login(header(browsers, first)) is None


@pytest.mark.parametrize(
    "content", ["", "[]", '{"credential": 1}', "\x00", '{"credential": "c", "logins": {"a": "b"}}']
)
def test_a_file_that_can_not_be_read_signs_out(tmp_path: Path, content: str) -> None:
    file = tmp_path / "browsers.json"
    file.write_text(content)
    browsers = Browsers(file, "c" * 32)
    secret = browsers.enter(browsers.invite())
    assert secret
    assert browsers.login(header(browsers, secret))
