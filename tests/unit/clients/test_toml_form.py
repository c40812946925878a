"""Only the text of one table changes, whatever the rest looks like."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.clients.forms import Malformed, with_entry
from serena_central.clients.toml_form import TomlForm

FORM = TomlForm()
KEYS = ("mcp_servers", "serena")
ENTRY = {"url": "http://127.0.0.1:24280/mcp", "http_headers": {"Authorization": "Bearer t"}}
TABLE = '[mcp_servers.serena]\nurl = "http://127.0.0.1:24280/mcp"\nhttp_headers = { Authorization = "Bearer t" }\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", TABLE),
        ('model = "o"\n', 'model = "o"\n\n' + TABLE),
        ('model = "o"', 'model = "o"\n\n' + TABLE),
        ("[a]\nb = 1\n\n", "[a]\nb = 1\n\n\n" + TABLE),
        ('[mcp_servers.serena]\ncommand = "old"\n', TABLE),
        (
            '# top\n[mcp_servers.serena] # ours\ncommand = "old"\n\n\n# next\n[mcp_servers.other]\ncommand = "x"\n',
            "# top\n" + TABLE + '\n\n# next\n[mcp_servers.other]\ncommand = "x"\n',
        ),
        (
            '[mcp_servers."serena"]\ncommand = "old"\n[mcp_servers.serena.http_headers]\nX = "1"\n[z]\n',
            TABLE + "[z]\n",
        ),
        (
            'a = """\n[mcp_servers.serena]\n"""\nb = [\n  [1],\n]\n[c]\n',
            'a = """\n[mcp_servers.serena]\n"""\nb = [\n  [1],\n]\n[c]\n\n' + TABLE,
        ),
    ],
)
def test_a_table_is_added_or_replaced(before: str, after: str) -> None:
    assert FORM.put(before, KEYS, ENTRY) == after
    assert FORM.put(after, KEYS, ENTRY) == after
    assert tomllib.loads(after)["mcp_servers"]["serena"] == ENTRY
    if before.endswith("\n"):
        assert FORM.put(before.replace("\n", "\r\n"), KEYS, ENTRY) == after.replace("\n", "\r\n")


@pytest.mark.parametrize(
    "text",
    [
        'model = "o" # mine\n',
        '[mcp_servers.a]\ncommand = "x"\n\n[profiles.fast]\nmodel = "y"\n',
        "[[things]]\na = 1\n\n[[things]]\na = 2\n",
        "[mcp_servers.one]\na = 1\n[z]\na = 1\n[mcp_servers.two]\na = 1\n",
        'a = 1\r\n[b]\r\nc = """\r\n[x]\r\n"""\r\n',
    ],
)
def test_taking_out_what_was_put_in_gives_the_text_back(text: str) -> None:
    assert FORM.take(FORM.put(text, KEYS, ENTRY), KEYS) == text
    assert FORM.take(text, KEYS) == text


BEHIND = [
    '[projects."/home/me/app/[slug]"]',
    "[projects.'a]b'] # ]",
    '[ projects . "x # ]" . "\\"]" ]',
    '[["[[".a]]',
    '[projects."[a]".b]#[c]',
    "\t[z]",
]


@pytest.mark.parametrize("header", BEHIND)
def test_tables_whose_names_have_brackets_in_quotes_are_tables(header: str) -> None:
    behind = f'{header}\ntrust_level = "trusted"\n'
    connected = f'[mcp_servers.serena]\ncommand = "old"\n{behind}'
    assert FORM.put(connected, KEYS, ENTRY) == TABLE + behind
    assert FORM.take(connected, KEYS) == behind
    assert FORM.take(FORM.put(behind, KEYS, ENTRY), KEYS) == behind
    assert FORM.put(behind + connected.removesuffix(behind), KEYS, ENTRY) == behind + TABLE


def test_a_line_ends_where_toml_says_so() -> None:
    behind = "[z]\na = 1\n"
    text = f'[mcp_servers.serena]\ncommand = "a\u2028# b"\n{behind}'
    assert FORM.put(text, KEYS, ENTRY) == TABLE + behind
    assert FORM.take(text, KEYS) == behind


def test_our_own_table_may_have_such_a_name() -> None:
    keys = ("projects", "/app/[slug]")
    text = FORM.put("[a]\nb = 1\n", keys, {"trust_level": "trusted"})
    assert FORM.put(text, keys, {"trust_level": "trusted"}) == text
    assert FORM.take(text, keys) == "[a]\nb = 1\n"


def test_tables_inside_of_ours_go_with_it_and_stay_when_it_is_renewed() -> None:
    text = '[mcp_servers.serena]\nurl = "u"\n\n[mcp_servers.serena.tools.x]\nenabled = true\n\n[z]\na = 1\n'
    renewed = FORM.put(text, KEYS, {"url": "v", "tools": {"x": {"enabled": True}}})
    assert renewed == text.replace('"u"', '"v"')
    assert FORM.take(text, KEYS) == "[z]\na = 1\n"


WRITTEN = '{ url = "http://127.0.0.1:24280/mcp", http_headers = { Authorization = "Bearer t" } }'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("mcp_servers = {}\n", "mcp_servers = { serena = @ }\n"),
        ("mcp_servers = {  } # none\n", "mcp_servers = { serena = @ } # none\n"),
        (
            "mcp_servers = { a = { command = \"}\" }, 'b.c'.x = [1, 2] } # two\n[z]\n",
            "mcp_servers = { a = { command = \"}\" }, 'b.c'.x = [1, 2], serena = @ } # two\n[z]\n",
        ),
        (
            'model = """\n}=[\n"""\n[mcp_servers]\nserena = { command = "old" } # ours\na = { x = 1 }\n',
            'model = """\n}=[\n"""\n[mcp_servers]\nserena = @ # ours\na = { x = 1 }\n',
        ),
        ('mcp_servers = { serena = { url = "old" }, a = {} }\n', "mcp_servers = { serena = @, a = {} }\n"),
    ],
)
def test_inline_tables_are_edited_as_they_are_written(before: str, after: str) -> None:
    after = after.replace("@", WRITTEN)
    assert FORM.put(before, KEYS, ENTRY) == after
    assert FORM.put(after, KEYS, ENTRY) == after
    assert FORM.read(after) == with_entry(FORM.read(before), KEYS, ENTRY)
    taken = FORM.take(after, KEYS)
    assert "serena" not in taken
    assert FORM.read(taken) == with_entry(FORM.read(before), KEYS, None)
    if "serena" not in before and "a =" in before:
        assert taken == before


@pytest.mark.parametrize(
    ("text", "line"), [("a = ", 1), ("a = 1\n[x\n", 2), ("a = 1\n\na = 2\n", 3), ("{}", 1), ("\x00", 1)]
)
def test_what_is_no_toml_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(Malformed) as refused:
        FORM.put(text, KEYS, ENTRY)
    assert refused.value.line == line


@given(
    st.recursive(
        st.booleans() | st.integers(-99, 99) | st.text(max_size=9) | st.floats(allow_nan=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=8,
    )
)
def test_any_value_is_written_as_toml_reads_it(value: Any) -> None:
    text = FORM.put("# first\n[other]\nx = 1\n", KEYS, {"é k": value})
    assert tomllib.loads(text) == {"other": {"x": 1}, "mcp_servers": {"serena": {"é k": value}}}


FRAGMENTS = (
    "[a]\nx = 1\n",
    "# a note\n",
    "\n",
    "[mcp_servers.other]\ncommand = 'x' # why\n",
    '[mcp_servers.other.env]\nA = """\n[mcp_servers.serena]\n"""\n',
    "[[things]]\nlist = [\n  [1, 2], # [no.header]\n  [3],\n]\n",
    '[mcp_servers.serena]\nurl = "old"\nextra = { a = 1 }\n',
    "[mcp_servers.serena.env]\nB = '[x]'\n",
    "  [ mcp_servers . 'serena' . tools ] # spaced\n  t = true\n",
    "[mcp_servers.'serena-2']\nurl = 'u'\n",
    "[b]\n'[c]' = '''\n[d]\n'''\n",
    "[lists]\nlists = [ # one\n  1,\n]\n",
    "[mcp_servers]\nserena = { a = 1 }\nother-2 = { x = '}', y = [1, 2] }\n",
    '[projects."/app/[slug]"] # ]\ntrust_level = "trusted"\n',
    "[[projects.'#['.\"]\\\"[\"]]\nnames = ['[x]']\n",
    "[dates]\ndate = 2026-01-31\nfloat = inf\n",
)


@given(st.lists(st.sampled_from(FRAGMENTS), unique=True), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_other_tables_never_change(fragments: list[str], line_end: str, with_env: bool) -> None:
    text = "".join(fragments).replace("\n", line_end)
    entry = {**ENTRY, "env": {"B": "[x]"}} if with_env else ENTRY
    try:
        before = FORM.read(text)
    except Malformed:  # some orders define a table twice
        return
    after = FORM.put(text, KEYS, entry)
    assert FORM.read(after) == with_entry(before, KEYS, entry)
    taken = FORM.read(FORM.take(after, KEYS))
    rest = with_entry(before, KEYS, None)
    if not rest["mcp_servers"]:
        del rest["mcp_servers"]
    assert taken == rest
    for fragment in fragments:
        if "serena" not in fragment and fragment.strip():
            assert fragment.replace("\n", line_end) in after
