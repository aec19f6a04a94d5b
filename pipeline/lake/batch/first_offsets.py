"""First offsets of a table without records of its topic, from `source.start`."""

from collections.abc import Mapping
from uuid import UUID

from pipeline.lake.batch.log_view import LogSource, PartitionView, TopicView
from pipeline.lake.errors import LostOffsetsError, StartError
from pipeline.lake.settings.start import Start, StartTimes


class FirstOffsets:
    """Found once: the latest offset, or the first of a timestamp, at the job's first view."""

    def __init__(self, start: Start, source: LogSource, *, fail_on_data_loss: bool = True) -> None:
        """Makes no request yet."""
        self._start = start
        self._source = source
        self._fail_on_data_loss = fail_on_data_loss
        self._found: tuple[UUID, Mapping[int, int]] | None = None

    def of(self, topic: TopicView) -> Mapping[int, int]:
        """Per partition; one that came later begins with all it has.

        Raises:
            StartError: An offset is beyond the log's end, or no record is of a time or later.
            LostOffsetsError: An offset is below the log's start, and losses are errors.
        """
        if self._found is None or self._found[0] != topic.topic_id:
            offsets = {
                number: self._first(topic.topic, number, partition)
                for number, partition in topic.partitions.items()
            }
            self._found = (topic.topic_id, offsets)
        first = self._found[1]
        return {n: max(first.get(n, p.start), p.start) for n, p in topic.partitions.items()}

    def forget(self, topic: TopicView) -> None:
        """Of this incarnation nothing is left out, whatever the job began with."""
        self._found = (topic.topic_id, {})

    def _first(self, topic: str, number: int, partition: PartitionView) -> int:
        start = self._start
        if start == "latest":
            return partition.end
        if isinstance(start, StartTimes):
            return self._timed(topic, number, partition, start)
        if isinstance(start, Mapping) and number in start:
            return self._named(topic, number, partition, start[number])
        return partition.start

    def _timed(self, topic: str, number: int, partition: PartitionView, start: StartTimes) -> int:
        time_ms = start.of(number)
        if time_ms is None:
            return partition.start
        found = self._source.offset_for_time(number, time_ms)
        if found is not None:
            return min(max(found, partition.start), partition.end)
        if start.latest_if_no_match:
            return partition.end
        raise StartError(
            f"no record of {topic}-{number} has the timestamp {time_ms} or a later one; with "
            "source.start.strategy: latest the table begins at the end then"
        )

    def _named(self, topic: str, number: int, partition: PartitionView, offset: int) -> int:
        if offset > partition.end:
            raise StartError(
                f"{topic}-{number} ends at offset {partition.end}, and source.start says {offset}"
            )
        if offset < partition.start and self._fail_on_data_loss:
            raise LostOffsetsError(topic, number, offset, partition.start)
        return max(offset, partition.start)
