"""What tracing says where its packages are missing, and that it is nothing while it is off."""

import re
import sys

import pytest

from serena_central.core import tracing
from serena_central.core.errors import ConfigError


def test_without_the_extra_packages_the_error_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigError, match=r"pipx install --force '\.\[otel\]'"), tracing.exporting("1"):
        pass


def test_a_span_while_tracing_is_off_is_the_same_nothing_every_time() -> None:
    assert not tracing.enabled()
    assert tracing.call_span("tool x") is tracing.step_span("scope")
    with tracing.continuing({"traceparent": "00-0-0-01"}), tracing.call_span("tool x") as current:
        assert current is None


def test_no_two_calls_have_the_same_id() -> None:
    ids = [tracing.new_call_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(re.fullmatch("c-[0-9a-f]{16}", one) for one in ids)
