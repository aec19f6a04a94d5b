"""A delayed ShareFetch: it waits for records, or delays the refusal of its session.

It is tried again when records are appended or released, when a lock has expired, and when a
share-partition is ready or fenced.
"""

from collections.abc import Callable

from typing_extensions import override

from broker.replicas.purgatory import DelayedOperation


class DelayedShareFetch(DelayedOperation):
    """A parked share fetch; `read_and_answer(force)` acquires, and answers if it is enough."""

    __slots__ = ("_read_and_answer",)

    def __init__(self, read_and_answer: Callable[[bool], bool]) -> None:
        super().__init__()
        self._read_and_answer = read_and_answer

    @override
    def try_complete(self) -> bool:
        """Satisfied when there is enough, or nothing to wait for."""
        if self.completed:
            return True
        if not self._read_and_answer(False):
            return False
        self._read_and_answer = _answered
        return self.complete()

    @override
    def on_complete(self, *, expired: bool) -> None:
        """Answer with the available records: the wait is over."""
        self._read_and_answer(True)


def _answered(_force: bool) -> bool:
    """Stands in for the answer once it has been given."""
    return True
