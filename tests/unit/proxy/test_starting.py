"""Servers that are started in the background: what each of them says."""

from pathlib import Path

from serena_central.proxy.starting import spawn_server
from serena_central.standalone.home import Home
from tests.support.child import PATIENCE_S


def test_each_start_reads_what_its_own_server_printed_and_the_log_is_the_newest(tmp_path: Path) -> None:
    home = Home(str(tmp_path / "home"))
    with spawn_server(home, ["--one"]) as first, spawn_server(home, ["--two"]) as second:
        for spawned in (first, second):
            assert spawned.process.wait(PATIENCE_S) == 2

        assert "--one" in first.last_line()
        assert "--two" in second.last_line()
    assert "--two" in Path(home.start_log).read_text()
    assert [one.name for one in (tmp_path / "home" / "logs").iterdir()] == ["start.log"]
