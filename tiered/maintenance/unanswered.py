"""When a round over many objects is given up: the store has not answered several times in a row.

Each call to a store that hangs lasts `tier.store.call.timeout.ms`, a minute. A round over a
thousand objects would be done next day, and say nothing before.
"""

from typing import Final

from tiered.errors import StoreUnavailableError, TieredError

UNANSWERED_MAX: Final = 3
"""In a row."""


class Unanswered:
    """Counts them.

    Attributes:
        is_over: The round is to be given up.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._in_a_row = 0

    def answered(self) -> None:
        """The store has answered, whatever it said."""
        self._in_a_row = 0

    def failed(self, error: TieredError) -> None:
        """A call has ended by this error."""
        if not isinstance(error, StoreUnavailableError):
            self.answered()
            return
        self._in_a_row += 1
        self.is_over = self.is_over or self._in_a_row == UNANSWERED_MAX

    def left(self, segments: int) -> list[str]:
        """What is said of segments that were not tried any more."""
        if not segments:
            return []
        return [f"{segments} more segments, as the object store does not answer"]
