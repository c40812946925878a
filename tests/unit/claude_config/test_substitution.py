"""Variables are resolved where secrets belong, and their values are never shown."""

import json
import logging
import pickle
import traceback
from copy import deepcopy

import msgspec
import pytest

from serena_central.claude_config.effective import shown
from serena_central.claude_config.substitution import Resolved, revealed, substitute
from tests.unit.claude_config.conftest import Machine

SECRET = "hunter2-canary"


def test_variables_are_resolved_in_env_servers_and_the_key_helper_alone(machine: Machine) -> None:
    machine.environment = {"TOKEN": SECRET, "FILE_PATH": "no"}
    hooks = {"PostToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": 'prettier "${FILE_PATH}"'}]}]}
    machine.user(
        {
            "apiKeyHelper": "helper ${TOKEN}",
            "env": {"KEY": "${TOKEN}", "DEFAULT": "${NOTHING:-fallback}"},
            "model": "${TOKEN}",
            "hooks": hooks,
            "mcpServers": {
                "s": {
                    "command": "run-${TOKEN}",
                    "args": ["--key=${TOKEN}"],
                    "env": {"A": "${TOKEN}"},
                },
                "h": {"url": "https://x/${TOKEN}", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            },
        }
    )
    value = machine.load().value
    assert revealed(value["apiKeyHelper"]) == f"helper {SECRET}"
    assert {name: revealed(one) for name, one in value["env"].items()} == {"KEY": SECRET, "DEFAULT": "fallback"}
    assert value["model"] == revealed(value["model"]) == "${TOKEN}"
    assert value["hooks"] == hooks
    server, remote = value["mcpServers"]["s"], value["mcpServers"]["h"]
    assert [revealed(server["command"]), revealed(server["args"][0]), revealed(server["env"]["A"])] == [
        f"run-{SECRET}",
        f"--key={SECRET}",
        SECRET,
    ]
    assert revealed(remote["url"]) == f"https://x/{SECRET}"
    assert revealed(remote["headers"]["Authorization"]) == f"Bearer {SECRET}"


def test_an_undefined_variable_is_an_error_with_file_line_and_key_and_leaves_out_what_needs_it(
    machine: Machine,
) -> None:
    file = machine.project(
        '{\n  "env": {\n    "A": "1",\n    "KEY": "${NOPE}"\n  },\n'
        '  "mcpServers": {"s": {"command": "x", "args": ["${NOPE}"]}, "t": {"command": "y"}}\n}'
    )
    loaded = machine.load()
    assert loaded.value == {"env": {"A": "1"}, "mcpServers": {"t": {"command": "y"}}}
    first, second = loaded.errors
    assert str(first).startswith(f"{file}:4:5: error: env.KEY: the variable NOPE is not set")
    assert second.key == "mcpServers.s.args[0]"


@pytest.mark.parametrize(
    ("template", "environment", "expected"),
    [
        ("${A}", {"A": "1"}, "1"),
        ("${A}", {"A": ""}, ""),
        ("${A:-d}", {"A": ""}, "d"),
        ("${A:-d}", {}, "d"),
        ("${A:-}", {}, ""),
        ("x${A}y${B}z", {"A": "1", "B": "2"}, "x1y2z"),
        ("$A", {"A": "1"}, "$A"),
        ("${}", {}, "${}"),
        ("${A", {"A": "1"}, "${A"),
        ("${a b}", {}, "${a b}"),
        ("${A}", {"A": "${B}", "B": "2"}, "${B}"),
    ],
)
def test_forms_of_variables(template: str, environment: dict[str, str], expected: str) -> None:
    found = substitute({"env": {"K": template}}, (("env", "*"),), environment, lambda *_: pytest.fail("undefined"))
    assert revealed(found["env"]["K"]) == expected


def test_a_resolved_value_shows_its_template_alone(caplog: pytest.LogCaptureFixture) -> None:
    value = Resolved.of("Bearer ${TOKEN}", f"Bearer {SECRET}")
    assert value == "Bearer ${TOKEN}"
    seen = [
        repr(value),
        str(value),
        f"{value}",
        f"{value!r:>40}",
        "%s" % value,  # noqa: UP031
        "".join([value]),
        json.dumps({"a": value, value: 1}),
        json.dumps(shown({"a": [value]})),
        msgspec.json.encode(shown({"a": [value]})).decode(),
        repr(deepcopy(value)),
        repr(pickle.loads(pickle.dumps(value))),
        repr(getattr(value, "__dict__", None)),
        repr([getattr(value, name, None) for name in dir(value)]),
    ]
    logging.getLogger("test").warning("starting with %s and %r", value, {"headers": value})
    seen.append(caplog.text)
    try:
        raise ValueError(value)
    except ValueError:
        seen.append("".join(traceback.format_exc()))
        seen.append(repr(traceback.TracebackException.from_exception(ValueError(value), capture_locals=True)))
    assert not [text for text in seen if SECRET in text]
    assert all("${TOKEN}" in text for text in seen[:9])
    assert value.reveal() == f"Bearer {SECRET}"
