"""A partition with remote storage, as the remote log sees it."""

from collections.abc import Callable
from dataclasses import dataclass

from storage.errors import DiskError
from storage.log.log import Log
from tiered.segment_metadata import TopicIdPartition
from tiered.tier import TopicFacts


def _always() -> bool:
    return True


def _never() -> bool:
    return False


@dataclass(slots=True)
class TieredPartition:
    """A partition that the broker begins to lead (or follow).

    Attributes:
        partition: Whose.
        log: Touched on the loop's thread only.
        leader_epoch: Of this leadership.
        facts: Called when a manifest is written.
        copy_paused: Called before every segment: the topic's or the cluster's switch.
        on_log_start_moved: Called after the log start offset was moved, to notify its waiters.
        on_disk_failed: Called when the local disk has failed: the log goes out of service.
        may_change: Called before anything is published or removed: whether it is certain that no
            other broker leads the partition by now. A process that was paused finds out so.
        is_truncating: Whether a thread is changing a follower's log: nothing else touches it then.
    """

    partition: TopicIdPartition
    log: Log
    leader_epoch: int
    facts: Callable[[], TopicFacts]
    copy_paused: Callable[[], bool]
    on_log_start_moved: Callable[[], None]
    on_disk_failed: Callable[[DiskError], None]
    may_change: Callable[[], bool] = _always
    is_truncating: Callable[[], bool] = _never
