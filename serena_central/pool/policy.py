"""Every bound of the pool, in one place: data with defaults, units in the names."""

import msgspec


class PoolPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The pool's settings. Counts are inclusive: the fifth failure opens the breaker."""

    start_timeout_s: float = 60.0
    """From spawn to the end of the handshake."""

    idle_timeout_s: float = 300.0
    """How long the idle clock runs before an unused server goes."""
    session_quiet_s: float = 300.0
    """An attached session that has not called for so long no longer holds the idle clock."""

    max_calls: int = 1000
    """A run that has given so many leases is replaced by a fresh one, started beside it."""
    drain_timeout_s: float = 300.0
    """How long calls may end on a replaced run; longer than any call's deadline."""

    memory_budget_bytes: int | None = None
    """For all language servers together; None means half of what this machine or container has."""

    breaker_failures: int = 5
    """Failures in a row that open the circuit breaker of a key."""
    breaker_open_s: float = 60.0
    """How long an open breaker refuses before it lets one probe through."""

    read_retries: int = 3
    """How often a read is repeated after its server crashed."""
    restart_delay_s: float = 0.5
    """Before the start that follows a second failure in a row; doubled with each further one. The first waits not."""
    restart_delay_cap_s: float = 10.0

    hang_calls: int = 3
    """Calls in a row that ended without an answer before the server's health is doubted."""
    health_timeout_s: float = 10.0
    """A server that does not answer a ping for so long hangs."""
    health_interval_s: float = 60.0
    """How often an idle server is asked."""

    sweep_interval_s: float = 10.0
    stop_timeout_s: float = 15.0
    """How long a person's stop or restart waits for the process tree to be gone; the stop ladder is shorter."""
    shutdown_timeout_s: float = 4.0
    """How long the pool's end waits for all stop ladders before they are cut short."""
    forget_after_s: float = 3600.0
    """How long a server that runs no more is still shown."""
