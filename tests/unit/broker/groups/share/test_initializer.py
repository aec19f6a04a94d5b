"""Share state is initialized partition by partition, and the log says which of them have it."""

from broker.groups.modern.journal import Journal
from broker.groups.share.initializer import Codes, Initializer
from protocol.error_codes import ErrorCode
from tests.harness.share_groups import FOO, ShareHarness

FAILED = ErrorCode.COORDINATOR_NOT_AVAILABLE


def begin(shard: ShareHarness, *, with_persister: bool = True) -> list[Codes]:
    """Initialize partitions 0 and 1 of foo; the list gets the outcome."""
    shard.enter("m1", "foo")
    codes: list[Codes] = []
    persister = shard.persister if with_persister else None
    made = Initializer(Journal(shard.shard.log), lambda: persister, shard.timer)
    made.begin(shard.share_group(), {FOO: {0: 5, 1: 6}}, codes.append)
    return codes


def test_each_partition_has_its_own_outcome() -> None:
    shard = ShareHarness()
    shard.persister.fail_with = {1: FAILED}
    (codes,) = begin(shard)
    assert codes == {FOO: {0: ErrorCode.NONE, 1: FAILED}}
    assert 0 in shard.initialized()[FOO]
    assert 1 not in shard.initialized()[FOO]
    assert shard.states()[FOO, 0] == 5
    shard.check()


def test_without_a_share_coordinator_nothing_is_initialized() -> None:
    shard = ShareHarness()
    shard.persister.hold = True
    (codes,) = begin(shard, with_persister=False)
    assert codes == {FOO: {0: FAILED, 1: FAILED}}
    assert not shard.initialized()


def test_group_that_has_gone_is_left_as_it_is() -> None:
    """Its new coordinator initializes again."""
    shard = ShareHarness()
    shard.persister.hold = True
    codes = begin(shard)
    assert codes == []
    group = shard.share_group()
    written = shard.log.ends[0]
    group.die(0)
    shard.persister.release()
    assert len(codes) == 1
    assert shard.log.ends[0] == written
