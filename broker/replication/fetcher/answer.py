"""One answer of a leader, on its way into the logs.

    partitions ──slice by slice of the loop──> taken ──all settled, nothing kept──> done

Its memory is the connection's, which receives nothing until then: it is given back when every
partition's records are in their log, or written by their directory's thread.
"""

from collections.abc import Callable

from protocol.hot.follower_fetch import FetchedPartition


class Answer:
    """See the module; `storage.log.write_queue.BorrowedMemory` of its records.

    Attributes:
        number: Of the request that it answers.
        partitions: All of its partitions, in order.
        taken_count: How many of them have been taken.
        is_taken: All of them have been.
        is_catching_up: Some of them are far behind.
    """

    __slots__ = (
        "_done",
        "_kept",
        "_release",
        "_settling",
        "is_catching_up",
        "is_taken",
        "number",
        "partitions",
        "taken_count",
    )

    def __init__(
        self,
        number: int,
        partitions: list[FetchedPartition],
        release: Callable[[], None],
        done: Callable[[], None],
    ) -> None:
        """`release`: gives the memory back; `done`: called then, once."""
        self.number = number
        self.partitions = partitions
        self.taken_count = 0
        self.is_taken = False
        self.is_catching_up = False
        self._release = release
        self._done = done
        self._kept = 0
        self._settling = 0

    def keep(self, _records: memoryview) -> Callable[[], None]:
        """Records wait for a thread."""
        self._kept += 1
        return self._let_go

    def _let_go(self) -> None:
        self._kept -= 1
        self._end_if_done()

    def settles(self) -> None:
        """Records of a partition are not settled yet."""
        self._settling += 1

    def settled(self) -> None:
        """They are."""
        self._settling -= 1
        self._end_if_done()

    def taken(self) -> None:
        """All partitions have been taken."""
        self.is_taken = True
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self.is_taken and not self._kept and not self._settling:
            self.is_taken = False
            self._release()
            self._done()
