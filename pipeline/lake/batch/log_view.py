"""The log of a topic as a lake job sees it: what of each partition is there now, and its bytes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from pipeline.lake.batch.batch_plan import Span, TaskRange
from pipeline.plan.piece import Piece


class PartitionView(NamedTuple):
    """A partition's log now.

    Attributes:
        start: Least offset to be read.
        end: Where rows of the isolation level end, exclusive.
        spans: Offsets of [start, end) with their bytes; what is missing between them is lost.
        newest_ms: Time of the newest record that is known without reading; -1: unknown.
    """

    start: int
    end: int
    spans: tuple[Span, ...]
    newest_ms: int = -1


class TopicView(NamedTuple):
    """A topic's log now, by partition."""

    topic: str
    topic_id: UUID
    partitions: Mapping[int, PartitionView]


class LogSource(Protocol):
    """The log of a topic, as a source of records."""

    def view(self) -> TopicView:
        """The topic now. Raises LakeError subclasses or what its store raises."""
        ...

    def aligned(self, tasks: Sequence[TaskRange]) -> Sequence[TaskRange]:
        """Tasks with the same offsets in all, cut where reading costs least."""
        ...

    def pieces(self, tasks: Sequence[TaskRange]) -> Sequence[tuple[Piece, ...]]:
        """The pieces to read for each range, of the log as of the last `view`."""
        ...

    def offset_for_time(self, partition: int, time_ms: int) -> int | None:
        """The first offset whose record has a timestamp or a later one, as of the last `view`.

        None: no record is.
        """
        ...
