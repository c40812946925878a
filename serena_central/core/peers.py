"""Whose programs are at the other ends of this machine's own connections, as the kernel lists them.

A link that a browser is started with (to sign in, to a login elsewhere) stands in its command line, where every user of
the machine can read it. So whoever comes by it is asked whose program it is.
"""

import os
import sys
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

Address = tuple[str, int]
"""A numeric host and a port."""

_TABLES = {4: Path("/proc/self/net/tcp"), 6: Path("/proc/self/net/tcp6")}

_UID = 7
"""The column."""


def is_another_users(peer: Address | None, ours: Address | None) -> bool:
    """Whether the program that connected from `peer` to `ours` is neither this user's nor root's. False where that is
    not known: it is on another machine or in another container, or the system lists no connections. Blocks."""
    if peer is None or ours is None or not sys.platform.startswith("linux"):
        return False
    for version in _TABLES:  # sockets of IPv6 can make connections of IPv4, which are listed with theirs
        try:
            ends = f" {_listed(peer, version)} {_listed(ours, version)} ".encode("ascii")
            rows = _TABLES[version].read_bytes()
        except (OSError, ValueError):
            continue
        if (found := rows.find(ends)) >= 0:
            row = rows[rows.rfind(b"\n", 0, found) + 1 :].split(None, _UID + 1)
            return int(row[_UID]) not in (os.geteuid(), 0)
    return False


def _listed(address: Address, version: int) -> str:
    """As the table of an IP version has it: in words of 32 bits, each in the machine's order.

    Raises:
        ValueError: no numeric address, or none of that version.
    """
    host: IPv4Address | IPv6Address | None = ip_address(address[0].partition("%")[0])
    if isinstance(host, IPv6Address) and version == 4:
        host = host.ipv4_mapped
    if isinstance(host, IPv4Address) and version == 6:
        host = IPv6Address(f"::ffff:{host}")
    if host is None:
        raise ValueError(f"{address[0]} is no address of IPv{version}")
    words = (int.from_bytes(host.packed[at : at + 4], sys.byteorder) for at in range(0, len(host.packed), 4))
    return "".join(f"{word:08X}" for word in words) + f":{address[1]:04X}"
