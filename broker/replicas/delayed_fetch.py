"""A Fetch that waits for more bytes.

It is tried again when the high watermark of one of its partitions has moved. The bytes appended
since it was parked are compared with the missing ones before anything is read, so that a fetch over
many partitions with a large `min_bytes` is not read again for every append.

Earlier bytes may also become readable: a marker has ended a transaction, or the disk has caught up.
Their number is not known, so partitions with such bytes are read; likewise those that are followed
here, whose records come before the high watermark that makes them readable.
"""

from collections.abc import Callable
from typing import Final

from typing_extensions import override

from broker.replicas.partition import Partition
from broker.replicas.purgatory import DelayedOperation

QUICK_BYTES_MAX: Final = 16 * 1024
"""What a fetch waits for at most that is answered within the append of it: such an answer is read
and sent in one step (`broker.network.sender.INLINE_SLICE_MAX`)."""


class DelayedFetch(DelayedOperation):
    """A parked fetch; `read_and_answer(force)` reads, and returns whether it was enough to answer.

    It ends early when a partition has another role or leader epoch, or none, because its response
    may then be an error, and errors are returned at once.

    Source: Kafka, DelayedFetch, cases A to H.
    """

    __slots__ = ("_committed_only", "_missing_bytes", "_read_and_answer", "_watched")

    def __init__(
        self,
        watched: list[Partition],
        missing_bytes: int,
        read_and_answer: Callable[[bool], bool],
        *,
        committed_only: bool = False,
    ) -> None:
        super().__init__()
        self._committed_only = committed_only
        self._watched = [
            (p, p.stats.bytes_in, self._held_back_at(p), p.role_number) for p in watched
        ]
        self._missing_bytes = missing_bytes
        self._read_and_answer = read_and_answer
        # One over many partitions reads all of them.
        self.is_quick = missing_bytes <= QUICK_BYTES_MAX and len(watched) == 1

    def _end(self, partition: Partition) -> int:
        log = partition.log
        return log.last_stable_offset if self._committed_only else log.high_watermark

    def _held_back_at(self, partition: Partition) -> int:
        """The end of reading if the log continues behind it, or is about to, else -1."""
        end = self._end(partition)
        return end if end < partition.log.next_offset or not partition.is_leader else -1

    @override
    def try_complete(self) -> bool:
        """Satisfied when enough is readable, or a partition's role has ended."""
        grown = 0
        for partition, before, held_back_at, role_number in self._watched:
            # Counted per topic: an over-estimate only costs a read of the log.
            grown += partition.stats.bytes_in - before
            if held_back_at >= 0 and self._end(partition) > held_back_at:
                grown = self._missing_bytes
            if partition.role_number != role_number:
                return self.complete(expired=True)
        if grown < self._missing_bytes or not self._read_and_answer(False):
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
