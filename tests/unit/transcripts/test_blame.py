"""Who wrote a line, in transcripts of each client's form; and what was said in them."""

import json
from pathlib import Path
from typing import Any

import pytest

from serena_central.store.usage_store import UsageStore
from serena_central.transcripts.blame import author_of
from serena_central.transcripts.counting import update
from serena_central.transcripts.edit_calls import calls_of_edits
from serena_central.transcripts.messages import messages
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.roots import roots_of, transcripts_in
from tests.support.transcripts import claude, codex_meta, failed, gemini, written

LINE = '    return sum(price for "ä" in prices)'


def user(text: str, at: str = "2026-11-01T09:00:00.000Z") -> dict[str, Any]:
    return {"type": "user", "timestamp": at, "sessionId": "s-1", "message": {"role": "user", "content": text}}


def edit(call: str, at: str, tool: str = "Edit", **given: str) -> dict[str, Any]:
    line = claude(call, at=at, request=f"req_{call}")
    line["message"]["content"] = [{"type": "tool_use", "id": call, "name": tool, "input": given}]
    return line


def asked(home: Path, line: str = LINE, name: str = "cart.py") -> tuple[str, str, str] | None:
    found = author_of(roots_of(home, {}), Path("/home/u/shop") / name, line)
    return found and (found.session, found.call, found.prompt)


def session(home: Path, name: str) -> Path:
    return home / ".claude" / "projects" / "-home-u-shop" / f"{name}.jsonl"


def test_the_latest_edit_that_wrote_the_line_is_named_with_its_prompt(tmp_path: Path) -> None:
    new = f"def total():\n{LINE}\n"
    first = edit("t1", "2026-11-01T10:00:00.000Z", file_path="/home/u/shop/cart.py", old_string="x", new_string=new)
    written(session(tmp_path, "s-1"), user("Sum the cart.\nPlease."), first, user("Thanks", "2026-11-01T11:00:00Z"))
    later = edit(
        "t2", "2026-11-02T10:00:00.000Z", "mcp__serena__replace_symbol_body", relative_path="cart.py", body=new
    )
    written(session(tmp_path, "s-2"), user("Again"), later)
    assert asked(tmp_path) == ("s-2", "t2", "Again")
    session(tmp_path, "s-2").unlink()
    assert asked(tmp_path) == ("s-1", "t1", "Sum the cart.")


def test_failed_edits_other_files_and_what_was_replaced_do_not_count(tmp_path: Path) -> None:
    lines = [
        edit("t1", "2026-11-01T10:00:00.000Z", file_path="cart.py", old_string=LINE, new_string="pass"),
        edit("t2", "2026-11-01T10:00:01.000Z", file_path="other.py", new_string=LINE),
        edit("t3", "2026-11-01T10:00:02.000Z", file_path="cart.py", new_string=LINE),
        failed("t3"),
        edit("t4", "2026-11-01T10:00:03.000Z", file_path="cart.py", new_string=f"{LINE} + 1"),
    ]
    written(session(tmp_path, "s-1"), *lines)
    assert asked(tmp_path) is None


def test_a_patch_of_codex_is_read(tmp_path: Path) -> None:
    patch = f"*** Begin Patch\n*** Update File: cart.py\n@@\n-    pass\n+{LINE}\n*** End Patch\n"
    call = {"type": "custom_tool_call", "name": "apply_patch", "call_id": "c1", "input": patch}
    prompt = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Do it"}]}
    items = [
        {"timestamp": f"2026-11-01T10:00:0{number}.000Z", "type": "response_item", "payload": payload}
        for number, payload in enumerate((prompt, call))
    ]
    name = "rollout-2026-11-01T10-00-00-01a20568-5176-7c23-8d01-d6c7fac1e871"
    written(tmp_path / ".codex" / "sessions" / f"{name}.jsonl", codex_meta("x"), *items)
    assert asked(tmp_path) == ("01a20568-5176-7c23-8d01-d6c7fac1e871", "c1", "Do it")


def test_what_was_said_is_read_in_order(tmp_path: Path) -> None:
    lines = [user("Where?"), edit("t1", "2026-11-01T10:00:00.000Z", file_path="a"), failed("t1"), b"{torn\n"]
    written(session(tmp_path, "s-1"), *lines)
    [file] = transcripts_in(roots_of(tmp_path, {}))
    assert [(one.role, one.text, one.call, one.failed) for one in messages(file)] == [
        ("user", "Where?", "", False),
        ("tool_call", "", "t1", False),
        ("tool_result", "no", "t1", True),
    ]


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_chats_of_gemini_are_read_in_both_forms(tmp_path: Path, suffix: str) -> None:
    call = {"id": "g1", "name": "write_file", "args": {"file_path": "/home/u/shop/cart.py", "content": LINE}}
    call |= {"status": "success", "resultDisplay": '{"edit": "e-0123456789ab"}'}
    broken = call | {"id": "g2", "status": "error"}
    prompt = {"id": "1", "type": "user", "timestamp": "2026-11-01T09:00:00Z", "content": "Sum it."}
    answers = [gemini(f"m-{one['id']}", input=10, output=5) | {"toolCalls": [one]} for one in (call, broken)]
    chat = tmp_path / ".gemini" / "tmp" / "shop" / "chats" / f"session-1.{suffix}"
    if suffix == "json":  # indented, as Gemini CLI wrote it
        document = {"sessionId": "gs-1", "messages": [prompt, *answers]}
        written(chat, json.dumps(document, indent=2, ensure_ascii=False).encode())
    else:
        written(chat, {"sessionId": "gs-1"}, prompt, *answers)
    roots = roots_of(tmp_path, {})
    with UsageStore(tmp_path / "usage.db") as store:
        update(store, roots, Prices())
        found = author_of(roots, Path("/home/u/shop/cart.py"), LINE, store.files())
        assert found is not None
        assert (found.session, found.call, found.prompt) == ("gs-1", "g1", "Sum it.")
        [made] = calls_of_edits(store, roots, {"e-0123456789ab": "write_file"}, 0.0)
        assert (made.session, made.call, made.use is not None) == ("gs-1", "g1", True)
