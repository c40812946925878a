"""When there is time to ask about files that are built on another platform.

For the first of a platform a server may load the project once more, and answers nothing meanwhile, whether or not
anybody waits for it any more. So these files come last and one after the other, by platform, and none is begun that
would leave the server loading when a call has ended: a further call begins with it.
"""

from serena_central.lsp.go_platforms import LOADS_S


class OtherPlatforms:
    """Of one call, at one server."""

    def __init__(self, *, has_begun: bool = False) -> None:
        self.has_begun = has_begun
        """Whether the call has asked about anything."""
        self._loaded: set[str] = set()

    def begins(self, platform: str, left_s: float) -> bool:
        """Whether a file may be asked about with so many seconds left, which then counts as begun. The first of a call
        may in any case, so that calls that are made again get on."""
        in_time = left_s > 0 and (not self.has_begun or platform in self._loaded or left_s >= LOADS_S)
        self.has_begun = self.has_begun or in_time
        return in_time

    def answered(self, platform: str) -> None:
        """A server has answered about one: another one of the platform takes no longer than any."""
        self._loaded.add(platform)
