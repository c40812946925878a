import logging

import pytest
from mcp.shared.exceptions import MCPError

from serena_central.core.errors import SessionNotFound, UpstreamCallFailed
from serena_central.mcp_server.errors import error_of, failed_result, protocol_error


def test_our_errors_become_results_with_their_own_words() -> None:
    result = failed_result(SessionNotFound("s-1"))
    assert result["isError"]
    assert "s-1" in result["content"][0]["text"]


def test_a_bug_is_logged_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        text = failed_result(ValueError("a secret"))["content"][0]["text"]
    (record,) = caplog.records
    assert record.args is not None
    assert "a secret" not in text
    assert str(record.args[0]) in text


def test_where_no_tool_was_called_errors_are_protocol_errors() -> None:
    refused = protocol_error(SessionNotFound("s-1"))
    assert isinstance(refused, MCPError)
    assert (refused.error.code, "s-1" in refused.error.message) == (-32600, True)


def test_the_sdks_own_errors_pass() -> None:
    own = MCPError(code=-32602, message="its own")
    assert protocol_error(own) is own


def test_an_upstreams_error_keeps_its_code_and_data() -> None:
    told = UpstreamCallFailed("docs", "no such page", code=-32002, data={"uri": "docs://x"})
    assert error_of(told) == {"code": -32002, "message": "no such page", "data": {"uri": "docs://x"}}
    assert "data" not in error_of(UpstreamCallFailed("docs", "no such page", code=-32002))
