"""Identifiers: random, unguessable, safe in URLs, file names and logs."""

import secrets


def new_session_id() -> str:
    """A session id with 96 random bits."""
    return "s-" + secrets.token_hex(12)


def new_call_id() -> str:
    """A call id; unique among the calls of one server."""
    return "c-" + secrets.token_hex(8)


def new_edit_id() -> str:
    """An edit id; short enough to be typed, unique among the edits that are kept."""
    return "e-" + secrets.token_hex(6)


def new_task_id() -> str:
    """A task id; short enough to be typed, unique among the tasks that are kept."""
    return "t-" + secrets.token_hex(6)
