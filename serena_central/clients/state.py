"""Decides whether an entry still points to the server, for `connect --list`."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from serena_central.clients.client import TOKEN_VARIABLE, is_ours, program_of, url_of
from serena_central.clients.forms import Value, members_of

CURRENT = "current"


def transport_of(entry: Value) -> str:
    """`stdio` or `http`."""
    return "http" if url_of(members_of(entry)) else "stdio"


def state_of(value: Value, *, url: str, token: str | None, environment: Mapping[str, str]) -> str:
    """`current`, or what is wrong with the entry and what to do."""
    entry = members_of(value)
    if not is_ours(value):
        return "another server with this name; connect replaces it"
    program = program_of(entry)
    if program is not None and (problem := _missing(program, environment)):
        return problem
    there = url_of(entry)
    if there is None or (program is not None and there == url):
        return CURRENT
    if there != url:
        return f"points to {there}, but the server is at {url}; connect again"
    return _token_state(str(entry), token, environment)


def _missing(program: str, environment: Mapping[str, str]) -> str | None:
    if Path(program).is_absolute():
        return None if shutil.which(program) else f"{program} no longer exists; connect again"
    if shutil.which(program, path=environment.get("PATH")):
        return None
    return f"{program} is not on PATH; clients that share the file require it there"


def _token_state(said: str, token: str | None, environment: Mapping[str, str]) -> str:
    if TOKEN_VARIABLE in said:
        set_right = token is not None and environment.get(TOKEN_VARIABLE) == token
        return CURRENT if set_right else f"requires ${TOKEN_VARIABLE} in the client's environment"
    return CURRENT if token is not None and token in said else "has an old token; connect again"
