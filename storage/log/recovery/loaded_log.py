"""What is known of a log before it is opened, and what opening it found."""

from dataclasses import dataclass

from storage.segment.segments import Segments


@dataclass(frozen=True, slots=True)
class CheckpointedLog:
    """What the checkpoints of a log directory say of a log, before it is read.

    The defaults are those of a log that was not closed cleanly, and none of which was flushed.

    Attributes:
        recovery_point: None if there is no checkpoint of it.
        log_start_offset: 0 if there is none.
        high_watermark: 0 if there is none; brought into the log's range.
        remote_offset: Last offset that was noted as copied to remote storage; -1 if there is none.
        was_compacted: The cleaner's checkpoint knows the log.
        no_gaps_above: Whoever wrote the log above its recovery point left no gap between two
            segments there: see `storage.checkpoints.log_directory`.
        clean_shutdown: The directory was closed cleanly, so nothing is scanned.
        is_doubtful: The disk has failed: what was read may be in the kernel's memory alone, so what
            is scanned is written again, and synced.
        new_leader_epoch: The one in which the log is led from now on, if that began with this
            start (KIP-320): it begins at the log's end, in whatever state that was found.
        latest_epoch: The cluster has begun no later one in this log, so batches of epochs up to it
            are believed where the epochs' checkpoint lags behind; None: that is not known.
        has_other_replicas: What is missing here may be fetched again.
    """

    recovery_point: int | None = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    remote_offset: int = -1
    was_compacted: bool = False
    no_gaps_above: bool = False
    clean_shutdown: bool = False
    is_doubtful: bool = False
    new_leader_epoch: int | None = None
    latest_epoch: int | None = None
    has_other_replicas: bool = False


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """What opening found.

    Attributes:
        segments: Ascending, at least one.
        log_start_offset: As in `storage.log.log`; likewise the other two.
        log_end_offset: See there.
        recovery_point: See there.
        set_aside: Folders with segments that are not part of the log.
        was_scanned: There may have been more of the log: its end was read from the batches.
        has_new_segment: There was no segment, and an empty one was made.
        gaps_until: See `storage.log.state`.
    """

    segments: Segments
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    set_aside: tuple[str, ...]
    was_scanned: bool
    has_new_segment: bool
    gaps_until: int | None
