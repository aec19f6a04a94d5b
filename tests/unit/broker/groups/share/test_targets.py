"""Targets of share groups that are computed in another thread."""

import pytest

from broker.groups.share import targets
from broker.groups.share.protocol import ShareProtocol
from broker.groups.state.group_shard import GroupShard
from broker.runtime.batches import BATCH_SIZE
from protocol.error_codes import ErrorCode
from tests.harness.coordinator import HeldOffload
from tests.harness.share_groups import Reply, ShareHarness


class LargeHarness(ShareHarness):
    """Every target counts as large."""

    offload: HeldOffload

    def new_shares(self, shard: GroupShard) -> ShareProtocol:
        self.offload = HeldOffload(hold=True)
        return ShareProtocol(
            shard,
            settings=self.settings,
            environment=self.environment,
            image=lambda: self.image,
            group_settings=lambda _: self.group_settings,
            persister=lambda: self.persister,
            state_altered=self.altered.append,
            offload=self.offload,
        )


@pytest.fixture
def shard(monkeypatch: pytest.MonkeyPatch) -> LargeHarness:
    monkeypatch.setattr(targets, "INLINE_SIZE_MAX", 0)
    return LargeHarness()


def entered(shard: LargeHarness, member_id: str) -> Reply:
    """A member that has joined and been answered."""
    reply = shard.enter(member_id)
    shard.offload.run_one()
    return reply


def test_who_joins_is_answered_with_the_target(shard: LargeHarness) -> None:
    reply = shard.enter("m1")
    assert reply.is_parked
    assert len(shard.offload.waiting) == 1
    shard.offload.run_one()
    assert reply.error is ErrorCode.NONE
    # Share state of the topic is there now: the next target has its partitions.
    assert shard.follow("m1").assignment is None
    shard.offload.run_one()
    assert shard.follow("m1").assignment == {"foo": [0, 1, 2, 3]}


def test_others_are_answered_as_things_stand(shard: LargeHarness) -> None:
    """One target at a time, whoever joins meanwhile."""
    entered(shard, "m1")
    shard.follow("m1")
    shard.offload.run_one()
    second = shard.enter("m2")
    third = shard.enter("m3")
    assert len(shard.offload.waiting) == 1
    before = shard.member("m1").member_epoch
    assert shard.follow("m1").error is ErrorCode.NONE
    assert shard.member("m1").member_epoch >= before
    assert second.is_parked
    assert third.is_parked
    shard.offload.run_one()
    assert second.error is ErrorCode.NONE
    # It came too late for this one, and is in the next.
    assert third.assignment == {}
    assert shard.follow("m3").error is ErrorCode.NONE
    shard.offload.run_one()
    group = shard.share_group()
    assert group.assignment_epoch == group.group_epoch
    assert set(group.target) == {"m1", "m2", "m3"}


def test_who_has_left_is_not_in_it(shard: LargeHarness) -> None:
    entered(shard, "m1")
    reply = shard.enter("m2")
    shard.exit("m2")
    shard.offload.run_one()
    assert reply.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert "m2" not in shard.share_group().target


def test_the_coordinator_goes(shard: LargeHarness) -> None:
    reply = shard.enter("m1")
    shard.shares.close()
    shard.offload.run_one()
    assert reply.error is ErrorCode.NOT_COORDINATOR


def test_many_are_answered_some_at_a_time(shard: LargeHarness) -> None:
    """What changes with each of them is written together."""
    replies = [shard.enter(f"m{number}") for number in range(2 * BATCH_SIZE + 1)]
    batches = len(shard.log.batches[0])
    shard.offload.run_one()
    assert sum(not reply.is_parked for reply in replies) == BATCH_SIZE
    # The target; then what the first ones have of it, and that share state was asked for.
    assert len(shard.log.batches[0]) - batches <= 3
    shard.timer.advance(0)
    assert {reply.error for reply in replies} == {ErrorCode.NONE}
    before = shard.share_group()
    shard.restart()
    after = shard.share_group()
    assert (after.members, after.target) == (before.members, before.target)


def test_the_coordinator_goes_when_some_were_answered(shard: LargeHarness) -> None:
    replies = [shard.enter(f"m{number}") for number in range(BATCH_SIZE + 1)]
    shard.offload.run_one()
    shard.shares.close()
    shard.timer.advance(0)
    assert [reply.error for reply in replies[-2:]] == [ErrorCode.NONE, ErrorCode.NOT_COORDINATOR]


def test_an_assignor_that_fails_is_asked_again(
    shard: LargeHarness, caplog: pytest.LogCaptureFixture
) -> None:
    reply = shard.enter("m1")
    shard.offload.run_one(fail_with=ValueError("no"))
    assert reply.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "target assignment could not be computed share group=" in caplog.text
    again = entered(shard, "m1")
    assert again.error is ErrorCode.NONE


def test_waiting_is_bounded(shard: LargeHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "WAITING_MAX", 1)
    first = shard.enter("m1")
    assert shard.enter("m2").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    shard.offload.run_one()
    assert first.error is ErrorCode.NONE


def test_what_is_written_is_read_back(shard: LargeHarness) -> None:
    entered(shard, "m1")
    shard.follow("m1")
    shard.offload.run_one()
    before = shard.share_group()
    shard.restart()
    after = shard.share_group()
    assert (after.target, after.assignment_epoch) == (before.target, before.assignment_epoch)
