"""Errors of a cluster: what kept a project's host from carrying a call out."""

from collections.abc import Sequence

from serena_central.core.errors.base import SerenaCentralError, listed
from serena_central.core.quoting import quoted


class ClusterError(SerenaCentralError):
    """The cluster can't be used as asked; the message says why."""


class DirectoryUnavailable(ClusterError):
    """The directory is being started again, or does not answer. Nothing was begun."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The cluster's directory is not available now: {why}. Call again.")


class NodeNameTaken(ClusterError):
    """Another node that lives has this name. Placements, hosts and epochs go by names of nodes."""

    def __init__(self, name: str, home: str) -> None:
        super().__init__(
            f"Another node named {quoted(name)} is in the cluster (its data folder: {quoted(home)}). "
            "Names must differ: pass another one with --name."
        )
        self.name = name


class HostUnavailable(ClusterError):
    """No node can hold the project's host now, or none could be started in time."""

    def __init__(self, root: str, reason: str) -> None:
        super().__init__(
            f"{quoted(root)} has no project host: {reason}. `serena-central cluster status` lists nodes and roots."
        )
        self.root = root
        self.reason = reason


class HostLost(ClusterError):
    """The host ended while it carried a call out that may have changed something."""

    def __init__(self, root: str, tool: str) -> None:
        super().__init__(
            f"The host of {quoted(root)} was lost while {tool} ran. It is unknown whether the call changed anything. "
            "Check the current state before you send it again."
        )
        self.root = root


class HostFenced(ClusterError):
    """Another host holds the project by now, or it can't be known: this one must not write. `current` is the newest
    epoch, None where it can't be asked for."""

    def __init__(self, root: str, epoch: int, current: int | None = None, problem: str = "") -> None:
        unknown = f"may have been replaced: {problem or 'the directory does not answer'}"
        why = unknown if current is None else "was replaced"
        super().__init__(f"Nothing was written: this host of {quoted(root)} (epoch {epoch}) {why}. Call again.")
        self.root = root
        self.epoch = epoch
        self.current = current


class SeveralHosts(ClusterError):
    """A call that one host must carry out means projects of several."""

    def __init__(self, tool: str, roots: Sequence[str]) -> None:
        super().__init__(
            f"{tool} changes all projects of a call or none, and these are on different hosts: {listed(roots)}. "
            "Nothing was changed; make one call for each."
        )
        self.roots = list(roots)
