"""Counters of the remote log metadata since the start; read at scrape time."""

from dataclasses import dataclass


@dataclass(slots=True)
class MetadataStats:
    """Counters of all metadata partitions together.

    Attributes:
        events_read: Records read from the topic.
        events_refused: Those whose step the state machines do not allow; they change nothing.
        events_undecodable: Those that are no records of ours.
        events_published: Written by this broker.
        publish_failures: Not written, or not read back in time.
        gaps: Times the topic had lost events that were still to be read.
        read_failures: Times reading was interrupted and tried again.
        loaded: Metadata partitions that were read from a snapshot or the start.
        loading_ms: Longest time that took.
        snapshots_written, snapshot_failures: As they say.
        snapshots_ignored: Damaged, of another topic, or ahead of its end.
    """

    events_read: int = 0
    events_refused: int = 0
    events_undecodable: int = 0
    events_published: int = 0
    publish_failures: int = 0
    gaps: int = 0
    read_failures: int = 0
    loaded: int = 0
    loading_ms: float = 0.0
    snapshots_written: int = 0
    snapshot_failures: int = 0
    snapshots_ignored: int = 0
