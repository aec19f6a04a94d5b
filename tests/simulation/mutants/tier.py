"""Bugs of remote storage."""

from dataclasses import replace as changed
from typing import Any

from tests.checker.mutation.seeding import replace


def local_log_dropped_uncopied() -> None:
    """A follower takes for copied what its log has, and drops it from its disk."""
    from tiered.tasks import partition_roles

    replace(
        partition_roles,
        "find_highest_remote_offset",
        lambda _metadata, _partition, log: log.high_watermark - 1,
    )


def metadata_not_read_to_its_end() -> None:
    """A new leader goes by the metadata of remote storage as it has read it."""
    from tiered.metadata.topic_based_manager import TopicMetadataManager

    replace(TopicMetadataManager, "refresh", lambda *_: None)

    async def as_it_is(*_: Any) -> None:
        """Nor is it read before an unfinished copy is removed."""

    replace(TopicMetadataManager, "caught_up", as_it_is)


def copied_and_expired_in_doubt() -> None:
    """A leader that was replaced, and does not know, goes on with copies and removals."""
    from tiered.tasks.led_partition import LedPartition

    replace(LedPartition, "may_change", property(lambda _: True))


def expired_early() -> None:
    """Remote segments go a third of their time too early."""
    from tiered.tasks import expirer
    from tiered.tasks.expiry_plan import plan_expiry

    def plan(*arguments: Any, **named: Any) -> Any:
        limits = next(one for one in (*arguments, *named.values()) if hasattr(one, "keep_after_ms"))
        if limits.keep_after_ms is not None:
            early = changed(limits, keep_after_ms=limits.keep_after_ms + 5_000)
            arguments = tuple(early if one is limits else one for one in arguments)
            named = {name: early if one is limits else one for name, one in named.items()}
        return plan_expiry(*arguments, **named)

    replace(expirer, "plan_expiry", plan)


def given_up_copies_left() -> None:
    """What a replaced leader uploads after the next one has given its copy up stays for ever."""
    from tiered.maintenance.garbage_collector import Scrubber
    from tiered.tasks.segment_copy import SegmentCopy

    async def nothing(*_: Any) -> None:
        pass

    replace(SegmentCopy, "remove_given_up", nothing)
    replace(Scrubber, "_remove", nothing)


def deleted_topics_segments_left() -> None:
    """What a deleted topic has in remote storage is nobody's business."""
    from broker.remote.deleted_topics import DeletedTopics
    from tiered.tasks.remote_log_manager import RemoteLogManager

    on_stop = RemoteLogManager.on_stop

    def stopping(self: RemoteLogManager, partition: Any, **_: Any) -> Any:
        return on_stop(self, partition, delete_remote=False)

    replace(RemoteLogManager, "on_stop", stopping)
    replace(DeletedTopics, "check", lambda _: None)
