import json

import msgspec

from serena_central.mcp_server.direct_lane import encoded


def test_data_that_is_json_already_stands_in_a_message_as_it_is() -> None:
    data = msgspec.Raw(b'{"Cart": [1, "\xc3\xa9"]}')
    for number in (7, "half a pair: \ud800"):
        message = {"jsonrpc": "2.0", "id": number, "result": {"structuredContent": {"result": data}}}
        assert json.loads(encoded(message)) == {
            "jsonrpc": "2.0",
            "id": number,
            "result": {"structuredContent": {"result": {"Cart": [1, "é"]}}},
        }
