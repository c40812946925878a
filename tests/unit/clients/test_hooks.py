"""Hooks in clients' files: ours come and go, all else stays."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.clients.change import Backups, Unusable, make, putting, taking
from serena_central.clients.forms import Entry, Malformed
from serena_central.clients.hooks import OURS, HooksForm
from serena_central.clients.json_form import JsonForm
from serena_central.clients.table import HOOKS

THEIRS = {"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh serena-hooks"}]}
SETTINGS = f"""{{
    "model": "opus",  "env": {{"A": "1"}},
    "hooks": {{
        "PreToolUse": [{json.dumps(THEIRS)}],
        "Stop": [ {{"hooks": [{{"type": "command", "command": "say done"}}]}} ]
    }},
    "last": [1,2]
}}
"""


def command_for(does: str) -> str:
    return f"serena-hook {does} --client c || exit 0"


def entry_of(client: str) -> Entry:
    return HOOKS[client].entry(command_for)


@pytest.mark.parametrize("client", HOOKS)
def test_hooks_come_into_an_empty_place_and_leave_nothing_behind(client: str, tmp_path: Path) -> None:
    file, form, backups = tmp_path / "hooks.json", HOOKS[client].form, Backups(tmp_path / "backups")
    make(putting(file, form, OURS, entry_of(client), private=False), backups)
    said = json.loads(file.read_text())
    assert json.dumps(said["hooks"]).count("serena-hook") == len(entry_of(client))
    assert putting(file, form, OURS, entry_of(client), private=False).is_none
    make(taking(file, form, OURS, backups, lambda old: old is not None), backups)
    assert not file.exists()


def test_others_hooks_stay_and_the_file_is_what_it_was_afterwards(tmp_path: Path) -> None:
    file, form, backups = tmp_path / "settings.json", HOOKS["claude-code"].form, Backups(tmp_path / "backups")
    file.write_text(SETTINGS)
    make(putting(file, form, OURS, entry_of("claude-code"), private=False), backups)
    text = file.read_text()
    hooks = json.loads(text)["hooks"]
    assert hooks["PreToolUse"][0] == THEIRS
    assert "serena-hook enforce" in hooks["PreToolUse"][1]["hooks"][0]["command"]
    assert '"model": "opus",  "env": {"A": "1"},' in text
    assert '"last": [1,2]' in text
    make(taking(file, form, OURS, backups, lambda old: old is not None), backups)
    assert file.read_text() == SETTINGS


def test_ours_are_renewed_in_place_and_taken_out_of_a_file_that_changed_since(tmp_path: Path) -> None:
    file, form, backups = tmp_path / "settings.json", HOOKS["claude-code"].form, Backups(tmp_path / "backups")
    file.write_text(SETTINGS)
    old = HOOKS["claude-code"].entry(lambda does: f"'/old place/python' -I -m serena_central.hook {does}")
    for entry in (old, entry_of("claude-code")):
        make(putting(file, form, OURS, entry, private=False), backups)
    assert "/old place" not in file.read_text()
    file.write_text(file.read_text().replace("opus", "other"))
    make(taking(file, form, OURS, backups, lambda old: old is not None), backups)
    assert json.loads(file.read_text()) == json.loads(SETTINGS.replace("opus", "other"))


def test_a_hook_that_a_user_put_beside_ours_stays() -> None:
    ours, own = {"type": "command", "command": "serena-hook enforce"}, {"type": "command", "command": "own"}
    text = json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [ours, own]}]}})
    left = json.loads(HooksForm(JsonForm(relaxed=False)).take(text, OURS))
    assert left == {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [own]}]}}


@pytest.mark.parametrize("text", ['{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', '{"hooks": 1', "[]"])
def test_a_file_of_another_shape_is_left_alone(text: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    with pytest.raises(Unusable):
        putting(file, HOOKS["claude-code"].form, OURS, entry_of("claude-code"), private=False)


VALUES = st.recursive(
    st.none() | st.booleans() | st.sampled_from(["x", "serena-hook enforce"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["hooks", "command", "matcher", "PreToolUse"]), inner, max_size=3)
    ),
    max_leaves=9,
)


@given(st.dictionaries(st.sampled_from(["PreToolUse", "Stop", "SessionStart"]), VALUES))
def test_whatever_stands_in_hooks_is_kept_or_refused(hooks: dict[str, Any]) -> None:
    form, text = HOOKS["claude-code"].form, json.dumps({"hooks": hooks, "more": 1})
    try:
        new = form.put(text, OURS, entry_of("claude-code"))
    except Malformed:
        return
    assert form.read(new) == {"rest": form.read(text)["rest"], "ours": dict(entry_of("claude-code"))}
    assert "ours" not in form.read(form.take(new, OURS))


COMMENTED = """{
    // hooks of the team
    "hooks": {
        "BeforeTool": [
            /* checks */ { "matcher": "x",   "hooks": [ {"command": "./check.sh"} ] }, // first
            // last
        ],
        "SessionStart": [],
    },
    "theme": "dark", // nice
}
"""


@pytest.mark.parametrize(
    "text",
    [
        '{"hooks": {"PreToolUse": [{"hooks": [{"command": "mine"}]}]},\n"hooks": {"PreToolUse": [{"hooks": [%s]}]}}',
        '{"hooks": {"PreToolUse": [{"hooks": [{"command": "mine"}]}],\n"PreToolUse": [{"hooks": [%s]}]}}',
    ],
)
def test_hooks_that_are_hidden_by_others_are_not_lost_with_ours(text: str) -> None:
    form, ours = HOOKS["claude-code"].form, '{"command": "serena-hook enforce"}'
    with pytest.raises(Malformed, match="is there twice"):
        form.take(text.replace("%s", ours), OURS)
    with pytest.raises(Malformed, match="is there twice"):
        form.put(text.replace("%s", ""), OURS, {"PreToolUse": []})


def test_comments_order_and_layout_of_others_hooks_stay() -> None:
    form = HOOKS["gemini"].form
    text = form.put(COMMENTED, OURS, entry_of("gemini"))
    for line in COMMENTED.splitlines():
        assert line.strip(" {},[]") in text
    assert text.index("./check.sh") < text.index("// last") < text.index("serena-hook enforce") < text.index("theme")
    renewed = form.put(text, OURS, HOOKS["gemini"].entry(lambda does: f"serena-hook {does} --mode nudge"))
    assert renewed.replace("--mode nudge", "--client c || exit 0") == text
    left = form.take(renewed, OURS)
    assert form.read(left)["rest"] == form.read(COMMENTED)["rest"]


@pytest.mark.parametrize(
    ("client", "before", "old", "new"),
    [
        ("gemini", COMMENTED, '"dark", // nice', '"light"'),
        ("gemini", COMMENTED, "// hooks of the team\n", '// hooks of all\n    "more": {},\n'),
        ("claude-code", SETTINGS, '"model": "opus"', '"model": "other"'),
        ("claude-code", SETTINGS, "say done", "say 'all done'"),
        ("claude-code", '{\n  "hooks": {},\n  "a": 1,\n  "model": "opus"\n}', "opus", "other"),
        (
            "claude-code",
            '{\n  "hooks": {\n    "Stop": [],\n    "PreToolUse": [ ]\n  },\n  "a": 1\n}',
            '"a": 1',
            '"a":  2',
        ),
    ],
)
def test_what_was_edited_since_stays_and_all_else_has_its_bytes_back(
    client: str, before: str, old: str, new: str, tmp_path: Path
) -> None:
    file, form, backups = tmp_path / "settings.json", HOOKS[client].form, Backups(tmp_path / "backups")
    file.write_text(before)
    make(putting(file, form, OURS, entry_of(client), private=False), backups)
    file.write_text(file.read_text().replace(old, new))
    make(taking(file, form, OURS, backups, lambda old: old is not None), backups)
    assert file.read_text() == before.replace(old, new)
    assert old not in file.read_text()
