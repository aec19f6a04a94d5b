"""Events that come when the group they are meant for is another one, or gone."""

from protocol.error_codes import ErrorCode
from tests.unit.broker.groups.consumer.harness import ConsumerHarness


def test_deleted_group_is_not_written_any_more() -> None:
    """A target that was due would come behind the tombstones, and a ghost out of the log."""
    h = ConsumerHarness(group_consumer_assignment_interval_ms=1_000)
    h.enter("m1")
    assert h.exit("m1").error is ErrorCode.NONE
    h.log.hold = True
    codes: list[ErrorCode] = []
    h.offsets.delete_group("g", codes.append)
    h.timer.advance(2_000)
    h.log.commit_held()
    assert codes == [ErrorCode.NONE]
    assert not h.shard.groups
    assert not h.reloaded().groups
