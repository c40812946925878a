import pytest
from msgspec.structs import replace
from starlette.types import Scope

from serena_central.access.auth import lend_credential
from serena_central.access.working_folder import folder_in
from serena_central.mcp_server.endpoint import sender_in
from serena_central.mcp_server.sender import ClientConnection, ClientInfo, Sender, identity_of


def request(**headers: str | bytes) -> Sender:
    scope: Scope = {
        "type": "http",
        "headers": [
            (name.replace("_", "-").encode(), value if isinstance(value, bytes) else value.encode())
            for name, value in headers.items()
        ],
    }
    lend_credential(scope, "credential")
    return sender_in(scope)


def test_a_modern_request_says_who_it_is_in_headers_and_envelope() -> None:
    identity = identity_of(
        request(x_serena_session="proxy-1", x_serena_project="/home/me/app", x_serena_context="ide"),
        client=ClientInfo("claude-code", "2.1"),
    )
    assert (identity.credential, identity.era) == ("credential", "modern")
    assert (identity.explicit_id, identity.transport_id) == ("proxy-1", None)
    assert (identity.client_name, identity.client_version) == ("claude-code", "2.1")
    assert (identity.working_folder, identity.context) == ("/home/me/app", "ide")


def test_a_handshake_request_is_known_by_its_transport() -> None:
    identity = identity_of(replace(request(), connection=ClientConnection("s-1")), client=ClientInfo())
    assert (identity.era, identity.transport_id) == ("handshake", "s-1")


def test_the_transports_header_alone_proves_nothing() -> None:
    assert identity_of(request(mcp_session_id="s-1"), client=ClientInfo()).transport_id is None


def test_a_conversation_id_comes_from_the_proxy_or_from_the_client_in_that_order() -> None:
    meta = {"threadId": "thread", "sessionId": "session"}
    assert identity_of(request(), client=ClientInfo(), meta=meta).conversation_id == "session"
    assert identity_of(request(), client=ClientInfo(), meta={"threadId": "thread"}).conversation_id == "thread"
    assert identity_of(request(x_serena_conversation="own"), client=ClientInfo(), meta=meta).conversation_id == "own"


@pytest.mark.parametrize("meta", [{"sessionId": 7}, {"sessionId": ""}, {"sessionId": None}, {}])
def test_what_is_no_conversation_id_is_ignored(meta: dict[str, object]) -> None:
    assert identity_of(request(), client=ClientInfo(), meta=meta).conversation_id is None


def test_empty_headers_say_nothing() -> None:
    identity = identity_of(request(x_serena_session=" ", x_serena_project="", x_serena_context=""), client=ClientInfo())
    assert (identity.explicit_id, identity.working_folder, identity.context) == (None, None, None)


def test_a_header_beats_roots_and_roots_beat_nothing() -> None:
    said = request(x_serena_project="/header")
    assert identity_of(said, client=ClientInfo(), roots_folder="/roots").working_folder == "/header"
    assert identity_of(request(), client=ClientInfo(), roots_folder="/roots").working_folder == "/roots"


def test_folders_with_any_bytes_survive() -> None:
    identity = identity_of(request(x_serena_project=b"/tmp/\xff\xc3\xbc"), client=ClientInfo())
    assert identity.working_folder is not None
    assert identity.working_folder.encode("utf-8", "surrogateescape") == b"/tmp/\xff\xc3\xbc"


@pytest.mark.parametrize("text", ["${PWD}", "{env:PWD}", "relative/path", "", None, "file://[::1/x", "file:///a%00b"])
def test_what_is_no_absolute_folder_is_none(text: str | None) -> None:
    assert folder_in(text) is None


def test_the_home_folder_may_be_abbreviated() -> None:
    assert folder_in("~/src") == "~/src"
    assert folder_in("file:///home/j%C3%BCrgen/50%25") == "/home/jürgen/50%"
