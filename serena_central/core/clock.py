"""How moments are told to people."""

import time


def utc(at: float) -> str:
    """Unix seconds as ISO 8601 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
