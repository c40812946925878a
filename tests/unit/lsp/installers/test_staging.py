from pathlib import Path

import pytest

from serena_central.core.errors import InstallFailed
from serena_central.lsp.installers.staging import Staging, plain

pytestmark = pytest.mark.anyio


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def shop(tmp_path: Path, lines: list[str]) -> Staging:
    return Staging("tiny", tmp_path, lines.append, temporary=tmp_path.with_name("tmp"))


async def test_a_command_sees_what_it_needs_and_no_secrets(
    shop: Staging, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example")
    monkeypatch.setenv("PIP_TARGET", "/elsewhere")
    monkeypatch.setenv("PATH", f".:bin:{tmp_path}:/usr/bin:/bin")
    said = await shop.run("env", keep=frozenset({"PIP_INDEX_URL"}), GOBIN="/here")
    seen = dict(line.partition("=")[::2] for line in said.splitlines())
    assert seen["PIP_INDEX_URL"] == "https://mirror.example"
    assert seen["GOBIN"] == "/here"
    assert seen["PATH"].startswith(f"{tmp_path}:/usr/bin:/bin:/")
    assert {"AWS_SECRET_ACCESS_KEY", "PIP_TARGET"}.isdisjoint(seen)


async def test_both_outputs_are_told_in_order_and_input_is_closed(shop: Staging, lines: list[str]) -> None:
    said = await shop.run("sh", "-c", "echo one; echo two >&2; cat; pwd; printf three")
    assert said.splitlines() == ["one", "two", str(shop.prefix), "three"]
    assert lines[1:] == said.splitlines()


async def test_a_failure_carries_the_end_of_the_output(shop: Staging) -> None:
    with pytest.raises(InstallFailed) as caught:
        await shop.run("sh", "-c", "seq 100; exit 3")
    assert "(exit code 3):\n86\n" in str(caught.value)
    assert str(caught.value).endswith("\n100")
    with pytest.raises(InstallFailed, match="no output"):
        await shop.run("false")
    with pytest.raises(InstallFailed, match="no-such-program"):
        await shop.run("no-such-program")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("Looking in https://me:secret@mirror.example/simple", "Looking in https://mirror.example/simple"),
        ("\x1b[32madded\x1b[0m 2 packages", "added 2 packages"),
        ("10%\r50%\r100%", "100%"),
        ("a\x07b", "ab"),
        ("x" * 1000, "x" * 400),
    ],
)
def test_a_line_is_shown_without_colours_control_characters_and_credentials(raw: str, shown: str) -> None:
    assert plain(raw) == shown
