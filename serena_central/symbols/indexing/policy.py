"""The indexing policy: patience, pauses and batch sizes. Injected: whoever builds a project may choose other
figures."""

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class IndexingPolicy:
    """Times are in seconds."""

    patience_s: float = 3.0
    """How long a caller waits for a server's first answer where symbols can be had by syntax: a quick server has
    started and answered by then; the others take a minute for a large project, and a caller gives up within one."""

    brief_patience_s: float = 1.0
    """The same while many files are not known: most servers load a large project for longer than anybody waits."""

    answer_s: float = 5.0
    """How long a caller waits for all that servers can say of its files, where symbols can be had by syntax."""

    look_s: float = 4.0
    """How long a find reads files that are not indexed, to see which hold its name: the 56,000 of the Linux kernel take
    1.6 s in memory, and a minute on a slow disk."""

    deadline_s: float = 10.0
    """How long a caller waits for files whose symbols can be had by syntax: for their server, and for the syntax."""

    patient_s: float = 45.0
    """How long a caller waits for files that only a server can read, and for an answer that must be complete: less than
    a call may take, so that what is known is returned."""

    many_files: int = 1000
    """So many files the background reads by syntax, too, where their server does not answer for them in the time that a
    caller would wait: all are known in a minute, and the server says more afterwards."""

    failure_holds_s: float = 30.0
    """How long a file that could not be indexed is left alone, unless it changes, and a server that did not start; also
    the first pause of the background before it asks again. Each round that gains nothing doubles that …"""

    longest_pause_s: float = 600.0
    """… up to this: nothing tells of a server that a person has repaired."""

    crashes_allowed: int = 2
    """A file that was being read when its server crashed this often is taken for the cause."""

    attempts: int = 12
    """How often one caller asks again about a file that keeps changing. On a busy machine five answers in a row came
    too late for a file that is written twice a second."""

    callers_requests: int = 8
    """In flight for one caller: keeps a server with several threads busy, and leaves room for other callers."""

    background_requests: int = 2
    """In flight for the background, which must not be felt by anybody."""

    gives_way_s: float = 5.0
    """How long background work waits for callers, and then goes on beside them: a first find in 56,000 files, which
    has to end in this time, takes twice as long beside it."""

    save_every_files: int = 2000

    save_every_s: float = 5.0
    """Seconds of background work that a crash may lose: a slow server answers for 2,000 files in minutes."""

    save_after_s: float = 2.0
    """How long nothing must have changed before fewer are saved: in a row of edits each would open and sync a database.
    What a crash loses is asked again; it would be in any case, so soon after a change (RACY_NS)."""
