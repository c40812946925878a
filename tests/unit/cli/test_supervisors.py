"""The files that systemd and launchd read."""

import plistlib
from pathlib import Path

import pytest

from serena_central.cli.supervisors import Launchd, NotSupervised, Program, Systemd, of_this_machine, run

PROGRAM = Program(
    Path("/home/me/my tools/serena-central"),
    {"PATH": "/usr/bin:/a b%/bin", "SERENA_HOME": '/x"y'},
    Path("/srv/start.log"),
)


def test_a_unit_starts_the_server_by_its_path_with_the_search_path_of_the_user() -> None:
    unit = Systemd(Path("/cfg")).content(PROGRAM).decode()
    assert 'ExecStart="/home/me/my tools/serena-central" serve\n' in unit
    assert 'Environment="PATH=/usr/bin:/a b%%/bin"\n' in unit
    assert 'Environment="SERENA_HOME=/x\\"y"\n' in unit
    assert "SuccessExitStatus=143\n" in unit
    assert "WantedBy=default.target\n" in unit
    assert Systemd(Path("/cfg")).file == Path("/cfg/systemd/user/serena-central.service")


def test_an_agent_starts_the_server_at_login_and_after_a_failure() -> None:
    said = plistlib.loads(Launchd(Path("/Users/me")).content(PROGRAM))
    assert said["ProgramArguments"] == ["/home/me/my tools/serena-central", "serve"]
    assert said["EnvironmentVariables"] == PROGRAM.environment
    assert (said["RunAtLoad"], said["KeepAlive"]) == (True, {"SuccessfulExit": False})
    assert Launchd(Path("/Users/me")).file == Path("/Users/me/Library/LaunchAgents/serena-central.plist")


def test_each_machine_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/cfg")
    assert of_this_machine("linux").file == Path("/cfg/systemd/user/serena-central.service")
    assert isinstance(of_this_machine("darwin"), Launchd)
    with pytest.raises(NotSupervised, match="win32"):
        of_this_machine("win32")


def test_a_command_that_fails_says_what_it_said() -> None:
    with pytest.raises(NotSupervised, match="no bus"):
        run([["true"], ["sh", "-c", "echo no bus >&2; exit 3"], ["false"]])
    with pytest.raises(NotSupervised, match="exit code 1"):
        run([["false"]])
    with pytest.raises(NotSupervised, match="could not be run"):
        run([["/nowhere/systemctl"]])
