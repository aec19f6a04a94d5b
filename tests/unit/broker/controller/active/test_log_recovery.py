"""Which log is the longest is asked of all that could have it, and only then is it led."""

from collections.abc import AsyncIterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.active.log_recovery import (
    Asked,
    LogEnd,
    PartitionRecovery,
    Phase,
    report_recovered,
)
from broker.controller.images.broker_records import LastRun
from broker.controller.images.cluster_image import TopicImage
from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.controller.topics.topics import NewTopic
from protocol.error_codes import ErrorCode
from storage.types.uuid_text import NIL
from tests.effort import examples
from tests.fakes.broker.control_world import ControlWorld


class Logs:
    """What each broker answers; one without an entry does not."""

    def __init__(self) -> None:
        self.ends: dict[int, LogEnd] = {}
        self.asked: list[tuple[int, list[Asked]]] = []

    async def ask(
        self, node_id: int, asked: Sequence[Asked], timeout_ms: float
    ) -> Mapping[Asked, LogEnd]:
        assert timeout_ms > 0
        self.asked.append((node_id, list(asked)))
        return dict.fromkeys(asked, self.ends[node_id]) if node_id in self.ends else {}


@pytest.fixture
async def world() -> AsyncIterator[ControlWorld]:
    world = await ControlWorld.open(3)
    try:
        yield world
    finally:
        await world.close()


@pytest.fixture
def logs(world: ControlWorld) -> Logs:
    logs = Logs()
    for node in world.nodes.values():
        node.active.recovery.ask = logs.ask
    return logs


async def lose_power(world: ControlWorld, strategy: str = "Balanced") -> None:
    """One partition on three brokers, all of which die."""
    await world.start()
    configs = [("min.insync.replicas", "2"), ("unclean.recovery.strategy", strategy)]
    (result,) = await world.active.controller.create_topics(
        [NewTopic("t", assignments=[(0, (1, 2, 3))], configs=configs)]
    )
    assert result.error is ErrorCode.NONE
    for member in world.members.values():
        await member.end_lease()
    await world.settle(2_000)


async def come_back(world: ControlWorld, *node_ids: int) -> None:
    for node_id in node_ids:
        await world.members[node_id].register(LastRun.UNKNOWN)
    await world.settle(3_000)


def partition(world: ControlWorld) -> PartitionImage:
    return world.image.topics["t"].partitions[0]


async def test_balanced_waits_for_all_and_takes_the_longest(
    world: ControlWorld, logs: Logs
) -> None:
    """By last epoch, then by end; a longer log of an earlier epoch has other records."""
    await lose_power(world)
    logs.ends = {1: LogEnd(4, 90), 2: LogEnd(5, 20), 3: LogEnd(5, 10)}
    await come_back(world, 1, 3)
    assert partition(world).leader == NO_LEADER
    assert logs.asked == []
    await come_back(world, 2)
    assert (partition(world).leader, partition(world).isr) == (2, (2,))
    assert partition(world).is_recovering
    assert {node for node, _ in logs.asked} == {1, 2, 3}
    assert sum(node.active.unclean_elections for node in world.nodes.values()) == 1


async def test_balanced_asks_again_until_each_has_answered(world: ControlWorld, logs: Logs) -> None:
    await lose_power(world)
    logs.ends = {1: LogEnd(4, 90), 3: LogEnd(4, 10)}
    await come_back(world, 1, 2, 3)
    assert partition(world).leader == NO_LEADER
    logs.ends[2] = LogEnd(4, 91)
    await world.settle(2_000)
    assert partition(world).leader == 2


async def test_the_last_in_sync_does_not_lead_over_a_longer_log(
    world: ControlWorld, logs: Logs
) -> None:
    """The others were out of sync, and it has lost more than they ever lacked: a new disk, say."""
    await world.start()
    (result,) = await world.active.controller.create_topics(
        [NewTopic("t", assignments=[(0, (2, 1, 3))])]
    )
    assert result.error is ErrorCode.NONE
    assert (await world.alter_isr("t", 0, [2])).error_code == 0
    await world.members[2].end_lease()
    await world.settle(1_000)
    assert (partition(world).leader, partition(world).elr) == (NO_LEADER, (2,))
    logs.ends = {1: LogEnd(0, 80), 3: LogEnd(0, 90)}
    await come_back(world, 2)
    # It has to answer; the others do as they live.
    assert (partition(world).leader, partition(world).last_known_elr) == (NO_LEADER, (2,))
    logs.ends[2] = LogEnd(-1, 0)
    await world.settle(2_000)
    assert (partition(world).leader, partition(world).isr) == (3, (3,))
    assert partition(world).is_recovering


async def test_the_last_in_sync_waits_for_no_other(world: ControlWorld, logs: Logs) -> None:
    """Those that are away were out of sync."""
    await world.start()
    (result,) = await world.active.controller.create_topics(
        [NewTopic("t", assignments=[(0, (2, 1, 3))])]
    )
    assert result.error is ErrorCode.NONE
    assert (await world.alter_isr("t", 0, [2])).error_code == 0
    await world.members[3].end_lease()
    await world.members[2].end_lease()
    await world.settle(3_000)
    logs.ends = {1: LogEnd(0, 80), 2: LogEnd(0, 85)}
    await come_back(world, 2)
    assert partition(world).leader == 2


async def test_the_last_in_sync_without_a_log_waits_for_all_others(
    world: ControlWorld, logs: Logs
) -> None:
    """One whose directory was given up begins an empty log, and may be back first."""
    await world.start()
    (result,) = await world.active.controller.create_topics(
        [NewTopic("t", assignments=[(0, (2, 1, 3))])]
    )
    assert result.error is ErrorCode.NONE
    assert (await world.alter_isr("t", 0, [2])).error_code == 0
    for node_id in (1, 3, 2):
        await world.members[node_id].end_lease()
    await world.settle(3_000)
    logs.ends = {1: LogEnd(0, 80), 2: LogEnd(-1, 0)}
    await come_back(world, 2)
    assert partition(world).leader == NO_LEADER
    await come_back(world, 1)
    assert (partition(world).leader, partition(world).isr) == (1, (1,))


def test_where_nobody_has_a_log_all_that_are_registered_have_said_so() -> None:
    """Aggressive waits for nobody."""
    empty = {2: LogEnd(-1, 0)}
    for needed, away, is_enough in [((2,), (), True), ((2,), (1,), False), ((), (1,), True)]:
        one = PartitionRecovery(TOPIC, RECORD, (2, 1, 3), needed)
        one.go(Phase.ASKING)
        one.epochs, one.away, one.ends = {2: 9}, away, empty
        assert one.answered() is is_enough
    silent = PartitionRecovery(TOPIC, RECORD, (2, 1, 3), (2,))
    silent.go(Phase.ASKING)
    silent.epochs, silent.ends = {2: 9, 1: 8}, empty
    assert not silent.answered()


async def test_aggressive_takes_the_longest_of_those_that_answer(
    world: ControlWorld, logs: Logs
) -> None:
    await lose_power(world, "Aggressive")
    logs.ends = {3: LogEnd(4, 10)}
    await come_back(world, 1, 3)
    assert partition(world).leader == 3


async def test_none_asks_nobody(world: ControlWorld, logs: Logs) -> None:
    await lose_power(world, "None")
    logs.ends = dict.fromkeys((1, 2, 3), LogEnd(1, 1))
    await come_back(world, 1, 2, 3)
    assert partition(world).leader == NO_LEADER
    assert logs.asked == []


async def test_the_next_controller_begins_anew(world: ControlWorld, logs: Logs) -> None:
    """Nothing of a round is in the store."""
    await lose_power(world)
    logs.ends = {1: LogEnd(4, 9), 3: LogEnd(4, 10)}
    await come_back(world, 1, 2, 3)
    first = world.active.member.node_id
    others = {1, 2, 3} - {first}
    assert partition(world).leader == NO_LEADER
    await world.members[first].end_lease()
    await world.settle(2_000)
    logs.ends[2] = LogEnd(4, 11)
    await world.members[first].register(LastRun.UNKNOWN)
    await world.settle(3_000)
    assert world.active.member.node_id in others
    assert partition(world).leader == 2


RECORD = PartitionImage(0, NO_LEADER, 3, 7, (1, 2, 3), (), last_known_elr=(2, 1, 3))
TOPIC = TopicImage("t", NIL, (RECORD,), {}, internal=False)
ENDS = st.builds(LogEnd, st.integers(-1, 3), st.integers(0, 5))


@given(
    answers=st.dictionaries(st.sampled_from([1, 2, 3]), ENDS, max_size=3),
    needed=st.sampled_from([(), (2,), (2, 1), (2, 1, 3)]),
)
@examples(200)
def test_no_log_is_longer_than_the_chosen_one(
    answers: dict[int, LogEnd], needed: tuple[int, ...]
) -> None:
    """And of equal ones the leader of before is taken."""
    one = PartitionRecovery(TOPIC, RECORD, (2, 1, 3), needed)
    one.go(Phase.ASKING)
    one.ends = answers
    complete = bool(answers) and set(needed) <= set(answers)
    assert one.answered() is complete
    if not complete:
        assert one.phase is Phase.WAITING
        return
    longest = max(answers.values())
    assert answers[one.chosen] == longest
    before = one.members[: one.members.index(one.chosen)]
    assert all(answers.get(node) != longest for node in before)


def test_a_phase_cannot_be_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    one = PartitionRecovery(TOPIC, RECORD, (2, 1, 3), (2, 1, 3))
    with pytest.raises(AssertionError):
        one.go(Phase.CHOSEN)
    one.go(Phase.ASKING)
    with pytest.raises(AssertionError):
        one.go(Phase.ASKING)
    one.go(Phase.WAITING)
    report_recovered([one])
    assert caplog.records == []
