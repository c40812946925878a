"""What is looked through for findings, by a language server that does not always answer at once."""

import json
from pathlib import Path

from tests.support.central import running_central
from tests.support.fake_server import DEFAULT_CAPABILITIES
from tests.support.fakes import methods_of
from tests.support.scripted import log_in, scripted_project, scripted_ty

DIAGNOSTIC = "textDocument/diagnostic"

COMPLAINT = {
    "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}},
    "severity": 1,
    "code": "unresolved-import",
    "message": "lost",
}


async def test_a_file_that_a_busy_server_gave_up_is_asked_about_again(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(
        tmp_path,
        capabilities=DEFAULT_CAPABILITIES
        | {"diagnosticProvider": {"interFileDependencies": True, "workspaceDiagnostics": False}},
        answers={DIAGNOSTIC: {"kind": "full", "items": [COMPLAINT]}},
        errors={DIAGNOSTIC: [-32802] * 4},
    )
    async with running_central(tmp_path) as central, central.raw("handshake") as client:
        result = await client.call("check_references", project=str(root), possible=True)
        answer, *remarks = (part["text"] for part in result["content"])
        assert [one["path"] for one in json.loads(answer)["broken"]] == ["cart.py"]
        assert remarks == []
    assert methods_of(log_in(tmp_path)).count(DIAGNOSTIC) == 5


async def test_what_is_only_possible_is_listed_when_it_is_new_in_the_session(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "cart.py").write_text("print((1).first)\n")
    async with running_central(tmp_path) as central, central.raw("handshake") as client:

        async def listed(**arguments: object) -> list[tuple[str, bool]]:
            result = await client.call("check_references", project=str(root), **arguments)
            return [(one["message"], one["new"]) for one in json.loads(result["content"][0]["text"])["broken"]]

        assert await listed() == []
        (root / "cart.py").write_text("\nprint((1).first)\nprint((1).second)\n")
        ((message, new),) = await listed()
        assert "second" in message
        assert new
        ((message, new),) = await listed(paths=["cart.py"])
        assert "second" in message
        assert [new for _, new in await listed(possible=True)] == [False, True]
