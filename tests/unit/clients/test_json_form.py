"""Only the text of one entry changes, whatever the rest looks like."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.clients.forms import Malformed, with_entry
from serena_central.clients.json_form import JsonForm

STRICT, RELAXED = JsonForm(relaxed=False), JsonForm(relaxed=True)
KEYS = ("mcpServers", "serena")
ENTRY = {"command": "/opt/bin/serena-proxy", "args": []}

BLOCK = """    "serena": {
      "command": "/opt/bin/serena-proxy",
      "args": []
    }"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "mcpServers": {\n' + BLOCK + "\n  }\n}\n"),
        ("{}", '{\n  "mcpServers": {\n' + BLOCK + "\n  }\n}"),
        ("{ }\n", '{\n  "mcpServers": {\n' + BLOCK + "\n  }\n}\n"),
        ("{\n}\n", '{\n  "mcpServers": {\n' + BLOCK + "\n  }\n}\n"),
        ('{\n  "a": 1\n}\n', '{\n  "a": 1,\n  "mcpServers": {\n' + BLOCK + "\n  }\n}\n"),
        ('{\n  "mcpServers": {}\n}\n', '{\n  "mcpServers": {\n' + BLOCK + "\n  }\n}\n"),
        (
            '{\n  "mcpServers": {\n    "other": {"command": "x"}\n  },\n  "z": [1, 2]\n}\n',
            '{\n  "mcpServers": {\n    "other": {"command": "x"},\n' + BLOCK + '\n  },\n  "z": [1, 2]\n}\n',
        ),
        (
            '{\n  "mcpServers": {\n    "serena": "old"\n  }\n}\n',
            '{\n  "mcpServers": {\n' + BLOCK + "\n  }\n}\n",
        ),
        (
            '{"a":1,"mcpServers":{"b":{}}}',
            '{"a":1,"mcpServers":{"b":{}, "serena": {"command": "/opt/bin/serena-proxy", "args": []}}}',
        ),
        (
            '{\n\t"mcpServers": {\n\t\t"b": {}\n\t}\n}',
            '{\n\t"mcpServers": {\n\t\t"b": {},\n' + BLOCK.replace("  ", "\t") + "\n\t}\n}",
        ),
    ],
)
def test_an_entry_is_added_in_the_style_of_the_file(before: str, after: str) -> None:
    assert STRICT.put(before, KEYS, ENTRY) == after
    assert RELAXED.put(before, KEYS, ENTRY) == after
    assert STRICT.put(after, KEYS, ENTRY) == after
    crlf = before.replace("\n", "\r\n")
    if "\n" in before:
        assert STRICT.put(crlf, KEYS, ENTRY) == after.replace("\n", "\r\n")


def test_a_file_of_comments_alone_gets_an_object_after_them() -> None:
    text = "// Settings\n/* none yet */"
    assert RELAXED.read(text) == {}
    after = RELAXED.put(text, KEYS, ENTRY)
    assert after.startswith(text + "\n{\n")
    assert RELAXED.read(after) == {"mcpServers": {"serena": ENTRY}}
    with pytest.raises(Malformed):
        STRICT.read(text)


@pytest.mark.parametrize(
    "text",
    [
        '// mine\n{\n  "mcpServers": {\n    "a": {}, // why a\n    /* b */ "b": {} // why b\n    // last\n  }\n}\n',
        '{\n  "mcpServers": {\n    "a": {},\n    "b": [1, 2,],\n  }, // tail\n}\n',
        '{ "mcpServers": { "a": "// no comment, [not, this,] either" } /* end */ }',
        '{\n  "mcpServers": {\n    "a": {"x": "\\"}"}\n  }\n}\n// the end',
        '{\n\n  "x": 1,\n\n  "mcpServers" : {\n\n    "a" : {}\n\n  }\n\n}\n\n',
        '{"mcpServers": {"a": 1}}\r\n',
        '{"mcpServers": {"a": {},}, }',
        '{"mcpServers":\n{"a": {} // x\n}}',
    ],
)
def test_comments_and_trailing_commas_stay_and_taking_out_gives_the_text_back(text: str) -> None:
    with_ours = RELAXED.put(text, KEYS, ENTRY)
    assert RELAXED.read(with_ours) == with_entry(RELAXED.read(text), KEYS, ENTRY)
    assert RELAXED.take(with_ours, KEYS) == text
    assert RELAXED.take(text, KEYS) == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", 1),
        ('{\n"a": 1\n"b": 2}', 3),
        ('{\n\n"a" 1}', 3),
        ("[]", 1),
        ('"text"', 1),
        ('{"a": tru}', 1),
        ('{"a": 01}', 1),
        ('{"a": NaN}', 1),
        ("{'a': 1}", 1),
        ('{"a": 1}\n}', 2),
        ('{"a": "x\ny"}', 1),
        ('{"a": "\\q"}', 1),
        ('{"a": [1 2]}', 1),
        ('{"a": [1,,2]}', 1),
        ("{,}", 1),
        ('{\n"a": 1 /* no end', 2),
        ('{"mcpServers": 7}', 1),
        ("[" * 100_000, 1),
        ('{"a":' * 5000, 1),
        ("<html>", 1),
        ("\x00", 1),
    ],
)
def test_what_is_no_json_object_is_refused_with_its_line(text: str, line: int) -> None:
    for form in (STRICT, RELAXED):
        with pytest.raises(Malformed) as refused:
            form.put(text, KEYS, ENTRY)
        assert refused.value.line == line


@pytest.mark.parametrize("text", ['{"a": 1,}', '{"a": [1,]}', '// x\n{"a": 1}', '{"a": 1 /* x */}'])
def test_strict_json_has_no_comments_and_no_trailing_commas(text: str) -> None:
    with pytest.raises(Malformed):
        STRICT.put(text, KEYS, ENTRY)
    assert RELAXED.read(text) in ({"a": 1}, {"a": [1]})


def test_an_entry_that_stands_there_twice_is_taken_out_altogether() -> None:
    text = '{"mcpServers": {"serena": 1, "b": 2, "serena": 3}}'
    assert json.loads(STRICT.take(text, KEYS)) == {"mcpServers": {"b": 2}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)
OTHERS = st.dictionaries(st.sampled_from(["a", "b", "//", "", "serena "]), JSON, max_size=3)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """JSON in many layouts, with noise where noise is allowed."""
    said: dict[str, Any] = draw(OTHERS)
    if draw(st.booleans()):
        said["mcpServers"] = draw(OTHERS) | ({"serena": draw(JSON)} if draw(st.booleans()) else {})
    text = json.dumps(said, indent=draw(st.sampled_from([None, 0, 1, 2, 4, "\t"])), ensure_ascii=draw(st.booleans()))
    noise = draw(st.sampled_from(["", " // note\n", "/* , } */", "\r\n", " \t "]))
    return noise + text.replace("{\n", "{" + noise + "\n") + noise


@given(documents(), st.dictionaries(st.sampled_from(["command", "é", "x"]), JSON, max_size=3))
def test_other_entries_never_change(text: str, entry: dict[str, Any]) -> None:
    before = RELAXED.read(text)
    after = RELAXED.put(text, KEYS, entry)
    assert RELAXED.read(after) == with_entry(before, KEYS, entry)
    assert RELAXED.read(RELAXED.put(after, KEYS, entry)) == RELAXED.read(after)
    taken = RELAXED.read(RELAXED.take(after, KEYS))
    assert taken == with_entry(with_entry(before, KEYS, {}), KEYS, None)


def test_many_comments_cost_no_more_than_their_length() -> None:
    text = '{"a": [1, ' + "/* b */ " * 5000 + "2]}"
    assert RELAXED.read(text) == {"a": [1, 2]}
