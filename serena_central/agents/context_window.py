"""What a conversation takes of its model's window, and when it is to be compacted."""

from serena_central.agents.tasks import Usage

WINDOW = 200_000
"""Tokens."""


class ContextWindow:
    """Of one task. Its size is what the provider counted for the last request, with the answer."""

    def __init__(self, compact_at: int) -> None:
        self.compact_at = compact_at
        self.used = 0
        self.wanted = False
        """Somebody asked to compact."""

    def counted(self, usage: Usage) -> None:
        self.used = usage.total

    @property
    def trigger(self) -> str | None:
        """Why it is to be compacted now, as hooks name it; None if it is not."""
        if self.wanted:
            return "manual"
        return "auto" if self.used >= self.compact_at else None

    def compacted(self) -> None:
        self.used, self.wanted = 0, False
