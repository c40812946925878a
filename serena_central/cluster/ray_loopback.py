"""Has Ray take loopback addresses as they are given. By itself it replaces them by this machine's outer address, and
then listens on all interfaces. As a program it is `ray`, with that; it imports nothing else of ours, to start quickly.
"""

# Ray is not there where the types are checked.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from ray._private import services


def keep_loopback() -> None:
    """For this process, before it uses Ray. Ray's own switch for this (RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0) does not
    let nodes join."""
    if not hasattr(services, "resolve_ip_for_localhost"):  # another Ray: let it fail here and not listen everywhere
        raise RuntimeError("This version of Ray is not known. Install the one that serena-central[cluster] asks for.")
    services.resolve_ip_for_localhost = _as_given


def _as_given(host: str) -> str:
    return host


if __name__ == "__main__":
    from ray.scripts.scripts import main

    keep_loopback()
    main()
