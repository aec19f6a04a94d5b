"""Seeded bugs of share groups: see `tests.checker.mutation.mutants`."""

from typing import Any

from tests.checker.mutation.seeding import RANDOM, replace


def state_not_replayed() -> None:
    """A share coordinator begins with no states after a restart."""
    from broker.share.state.shard import ShareShard

    replace(ShareShard, "replay", lambda *_: None)


def state_not_written() -> None:
    """One acknowledgement in five of a share group is answered and not written."""
    from broker.share.delivery.share_partition import SharePartition
    from protocol.error_codes import ErrorCode

    write = SharePartition._write

    def sometimes(share: SharePartition, batches: Any, done: Any) -> None:
        if RANDOM.random() < 0.2:
            done(ErrorCode.NONE)
        else:
            write(share, batches, done)

    replace(SharePartition, "_write", sometimes)


def accept_forgotten() -> None:
    """One acceptance in fifty by a share group's member is taken for a release."""
    from broker.share.delivery.share_partition import SharePartition

    acknowledge = SharePartition.acknowledge
    accept, release = 1, 2

    def sometimes(share: SharePartition, member_id: str, said: Any, done: Any) -> None:
        if RANDOM.random() < 0.02:
            said = [
                one._replace(types=[release if kind == accept else kind for kind in one.types])
                for one in said
            ]
        acknowledge(share, member_id, said, done)

    replace(SharePartition, "acknowledge", sometimes)


def release_is_final() -> None:
    """What a share group's member releases is given up."""
    from broker.share.delivery.in_flight import RecordState
    from broker.share.delivery.share_partition import SharePartition

    replace(SharePartition, "_released_state", lambda _share, _run: RecordState.ARCHIVED)


def lock_for_ever() -> None:
    """A lock of a share group never runs out, not even when its member has gone."""
    from broker.share.delivery.share_partition import SharePartition
    from protocol.error_codes import ErrorCode

    replace(SharePartition, "_expire", lambda _share, _lock: None)
    replace(SharePartition, "release", lambda _share, _member, done: done(ErrorCode.NONE))


def limit_ignored() -> None:
    """A share group gives no record up."""
    from broker.share.delivery.in_flight import RecordState
    from broker.share.delivery.share_partition import SharePartition

    replace(SharePartition, "_released_state", lambda _share, _run: RecordState.AVAILABLE)


def aborted_delivered() -> None:
    """A share group that asks for committed records gets aborted ones, too."""
    from broker.share.delivery.share_partition import SharePartition

    acquire = SharePartition.acquire

    def acquired(share: SharePartition, member_id: str, batches: Any, **named: Any) -> Any:
        return acquire(share, member_id, batches, **{**named, "aborted": ()})

    replace(SharePartition, "acquire", acquired)


def skips_a_record() -> None:
    """One fetch in twenty of a share group passes over a record."""
    from broker.share.delivery.in_flight import RecordState, Run
    from broker.share.delivery.share_partition import SharePartition

    acquire = SharePartition.acquire

    def sometimes(share: SharePartition, member_id: str, batches: Any, **named: Any) -> Any:
        at = share.end_offset
        if batches and batches[-1].last_offset > at and share.in_flight and RANDOM.random() < 0.05:
            share._in_flight.append(Run(at, at, RecordState.ARCHIVED, 0))
            share.end_offset = at + 1
        return acquire(share, member_id, batches, **named)

    replace(SharePartition, "acquire", sometimes)
