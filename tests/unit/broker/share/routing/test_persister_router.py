"""The share coordinator on whichever broker: in order, and again when it has moved."""

from typing import Any

import pytest

from broker.coordinator.persister import ShareState, ShareSummary
from broker.runtime.errors import ApiError
from broker.share.routing import persister_router
from broker.share.routing.persister_router import BACK_OFF_FIRST_MS, BACK_OFF_MAX_MS
from protocol.error_codes import ErrorCode as E
from protocol.internal.share_state import StateBatch
from protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from tests.fakes.broker.peers import Sent
from tests.unit.broker.share.routing.conftest import DATA, DELETED, TIMEOUT_MS, World, key

HERE, AWAY, THIRD, NOBODY = (key(index) for index in range(4))

WRITE: dict[str, Any] = {
    "state_epoch": 1,
    "leader_epoch": 2,
    "start_offset": 5,
    "delivery_complete_count": 3,
    "batches": [StateBatch(5, 9, 2, 1)],
}

ANSWERS: dict[str, tuple[Any, Any, Any]] = {
    "Initialize": (
        initialize_share_group_state.InitializeShareGroupStateResponse,
        initialize_share_group_state.InitializeStateResult,
        initialize_share_group_state.PartitionResult,
    ),
    "Read": (
        read_share_group_state.ReadShareGroupStateResponse,
        read_share_group_state.ReadStateResult,
        read_share_group_state.PartitionResult,
    ),
    "Write": (
        write_share_group_state.WriteShareGroupStateResponse,
        write_share_group_state.WriteStateResult,
        write_share_group_state.PartitionResult,
    ),
    "Delete": (
        delete_share_group_state.DeleteShareGroupStateResponse,
        delete_share_group_state.DeleteStateResult,
        delete_share_group_state.PartitionResult,
    ),
    "ReadSummary": (
        read_share_group_state_summary.ReadShareGroupStateSummaryResponse,
        read_share_group_state_summary.ReadStateSummaryResult,
        read_share_group_state_summary.PartitionResult,
    ),
}


def answer(request: Sent, what: str, code: E = E.NONE, **value: Any) -> None:
    """The same answer for every partition of the request."""
    response, topic, result = ANSWERS[what]
    request.answer(
        response(
            results=[
                topic(
                    topic_id=asked.topic_id,
                    partitions=[
                        result(partition=one.partition, error_code=code, **value)
                        for one in asked.partitions
                    ],
                )
                for asked in request.message.topics
            ]
        )
    )


def write(w: World, where: Any = AWAY, **change: Any) -> list[E]:
    codes: list[E] = []
    w.router.write(where, **(WRITE | change), done=codes.append)
    return codes


def test_the_coordinator_of_this_broker_is_asked_at_once(w: World) -> None:
    codes: list[Any] = []
    w.router.initialize(HERE, 1, 5, codes.append)
    w.router.delete(HERE, codes.append)
    w.router.read(HERE, 3, lambda *found: codes.append(found))
    w.router.read_summary(HERE, lambda *found: codes.append(found))
    w.router.write(HERE, **WRITE, done=codes.append)
    assert codes == [
        E.NONE,
        E.NONE,
        (E.NONE, ShareState(1, 5, ())),
        (E.NONE, ShareSummary(1, 2, 5, 0)),
        E.NONE,
    ]
    assert w.local.asked == [
        ("initialize", HERE, 1, 5),
        ("delete", HERE),
        ("read", HERE, 3),
        ("summary", HERE),
        ("write", HERE, WRITE),
    ]
    assert not w.peers.sent
    assert len(w.router) == 0


async def test_the_five_requests(w: World) -> None:
    outcomes: list[Any] = []
    w.router.initialize(AWAY, 1, 5, outcomes.append)
    await w.settle()
    request = w.peers.take()
    assert (request.node_id, request.version, request.message.group_id) == (2, 0, "g")
    (topic,) = request.message.topics
    (one,) = topic.partitions
    assert (topic.topic_id, one.partition, one.state_epoch, one.start_offset) == (
        DATA.topic_id,
        1,
        1,
        5,
    )
    answer(request, "Initialize")
    await w.settle()

    w.router.read(AWAY, 3, lambda *found: outcomes.append(found))
    await w.settle()
    request = w.peers.take()
    assert request.message.topics[0].partitions[0].leader_epoch == 3
    batch = read_share_group_state.StateBatch(
        first_offset=5, last_offset=9, delivery_state=2, delivery_count=1
    )
    answer(request, "Read", state_epoch=1, start_offset=5, state_batches=[batch])
    await w.settle()

    w.router.read_summary(AWAY, lambda *found: outcomes.append(found))
    await w.settle()
    answer(
        w.peers.take(),
        "ReadSummary",
        state_epoch=1,
        leader_epoch=2,
        start_offset=5,
        delivery_complete_count=4,
    )
    await w.settle()

    w.router.write(AWAY, **WRITE, done=outcomes.append)
    await w.settle()
    request = w.peers.take()
    (one,) = request.message.topics[0].partitions
    assert (one.state_epoch, one.leader_epoch, one.start_offset, one.delivery_complete_count) == (
        1,
        2,
        5,
        3,
    )
    assert [(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count)
            for b in one.state_batches] == [(5, 9, 2, 1)]  # fmt: skip
    answer(request, "Write", E.FENCED_LEADER_EPOCH)
    await w.settle()

    w.router.delete(AWAY, outcomes.append)
    await w.settle()
    answer(w.peers.take(), "Delete")
    await w.settle()
    assert outcomes == [
        E.NONE,
        (E.NONE, ShareState(1, 5, (StateBatch(5, 9, 2, 1),))),
        (E.NONE, ShareSummary(1, 2, 5, 4)),
        E.FENCED_LEADER_EPOCH,
        E.NONE,
    ]


async def test_calls_of_a_turn_go_together_by_broker_group_and_request(w: World) -> None:
    w.lead(2, 2, 3, 2)
    codes = [write(w, where) for where in (key(0), key(1), key(2), key(3), key(0, "other"))]
    w.router.delete(key(1, "third"), lambda code: None)
    w.end_turn()
    sent = [
        (
            request.node_id,
            type(request.message).__name__.partition("Share")[0],
            request.message.group_id,
            [one.partition for topic in request.message.topics for one in topic.partitions],
        )
        for request in w.peers.sent
    ]
    assert sent == [
        (2, "Write", "g", [0, 1, 3]),
        (2, "Write", "other", [0]),
        (2, "Delete", "third", [1]),
        (3, "Write", "g", [2]),
    ]
    answer(w.peers.sent[0], "Write", E.FENCED_STATE_EPOCH)
    await w.settle()
    assert codes[:2] == [[E.FENCED_STATE_EPOCH]] * 2
    assert codes[2] == []


async def test_a_request_has_only_so_many_items(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persister_router, "ITEMS_PER_REQUEST", 2)
    w.lead(2, 2, 2)
    for index in range(3):
        write(w, key(index))
    w.end_turn()
    assert [len(r.message.topics[0].partitions) for r in w.peers.sent] == [2, 1]


async def test_writes_that_wait_for_one_under_way_go_as_one(w: World) -> None:
    """In order: the last start offset counts, where there is one."""
    first = write(w)
    w.end_turn()
    later = [
        write(w, start_offset=10, batches=[StateBatch(10, 12, 0, 1)], delivery_complete_count=0),
        write(w, start_offset=-1, batches=[StateBatch(13, 13, 4, 2)], delivery_complete_count=1),
    ]
    w.end_turn()
    request = w.peers.take()
    answer(request, "Write")
    await w.settle()
    assert first == [E.NONE]
    (one,) = w.peers.sent[0].message.topics[0].partitions
    assert [b.first_offset for b in one.state_batches] == [10, 13]
    assert (one.start_offset, one.delivery_complete_count) == (10, 1)
    answer(w.peers.take(), "Write")
    await w.settle()
    assert later == [[E.NONE], [E.NONE]]
    assert len(w.router) == 0


async def test_what_is_no_write_of_the_same_leader_goes_alone(w: World) -> None:
    write(w)
    w.end_turn()
    write(w)
    write(w, leader_epoch=3)
    write(w, leader_epoch=3, state_epoch=2)
    w.router.delete(AWAY, lambda code: None)
    write(w)
    kinds = []
    for _ in range(6):
        request = w.peers.take()
        kind = type(request.message).__name__.partition("Share")[0]
        kinds.append(kind)
        answer(request, kind)
        await w.settle()
    assert kinds == ["Write"] * 4 + ["Delete", "Write"]


@pytest.mark.parametrize(
    "code",
    [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_LOAD_IN_PROGRESS, None],
)
async def test_a_coordinator_that_has_moved_is_looked_up_and_asked_again(
    w: World, code: E | None
) -> None:
    """And nothing overtakes the call meanwhile."""
    codes, later = write(w), write(w)
    w.end_turn()
    if code is None:
        w.peers.take().fail(sent=True)
    else:
        answer(w.peers.take(), "Write", code)
    await w.settle()
    assert not w.peers.sent
    w.lead(1, 3, 3)
    await w.pass_time(BACK_OFF_FIRST_MS)
    request = w.peers.take()
    assert request.node_id == 3
    answer(request, "Write")
    await w.settle()
    assert (codes, later) == ([E.NONE], [])
    w.lead(1, 1, 3)
    answer(w.peers.take(), "Write", E.NOT_COORDINATOR)
    await w.settle()
    await w.pass_time(BACK_OFF_FIRST_MS)
    assert later == [E.NONE]
    assert w.local.asked[0][0] == "write"


async def test_the_back_off_grows_and_ends_with_the_time(w: World) -> None:
    codes: list[E] = []
    w.router.initialize(NOBODY, 1, 5, codes.append)
    waits = []
    while not codes:
        assert w.environment.timer.pending == 1
        waited = 0
        attempts = w.router._queues[NOBODY][0].attempts
        while NOBODY in w.router._queues and w.router._queues[NOBODY][0].attempts == attempts:
            await w.pass_time(10)
            waited += 10
        waits.append(waited)
    assert waits[:6] == [20, 40, 80, 160, 320, BACK_OFF_MAX_MS]
    assert TIMEOUT_MS <= sum(waits) <= TIMEOUT_MS + BACK_OFF_MAX_MS
    assert codes == [E.COORDINATOR_NOT_AVAILABLE]


async def test_the_topic_is_created_for_whoever_asks_first(w: World) -> None:
    w.lead()
    made: list[str] = []

    def ensure() -> None:
        made.append("topic")
        w.lead(1, 2)

    w.local.on_ensure = ensure
    codes: list[E] = []
    w.router.initialize(HERE, 1, 5, codes.append)
    w.router.initialize(AWAY, 1, 5, codes.append)
    await w.settle()
    await w.pass_time(BACK_OFF_FIRST_MS)
    assert made == ["topic"]
    answer(w.peers.take(), "Initialize")
    await w.settle()
    assert codes == [E.NONE, E.NONE]


async def test_the_topic_cannot_be_created(w: World, caplog: pytest.LogCaptureFixture) -> None:
    w.lead()

    def refuse() -> None:
        raise ApiError(E.INVALID_REPLICATION_FACTOR)

    w.local.on_ensure = refuse
    codes: list[E] = []
    w.router.initialize(HERE, 1, 5, codes.append)
    for _ in range(20):
        await w.pass_time(BACK_OFF_MAX_MS)
    assert codes == [E.COORDINATOR_NOT_AVAILABLE]
    assert "topic cannot be created topic=states" in caplog.text
    await w.router.stop()


async def test_a_coordinator_that_has_not_heard_of_the_topic_yet(w: World) -> None:
    codes = write(w)
    w.end_turn()
    answer(w.peers.take(), "Write", E.UNKNOWN_TOPIC_OR_PARTITION)
    await w.settle()
    assert codes == []
    await w.pass_time(BACK_OFF_FIRST_MS)
    answer(w.peers.take(), "Write")
    await w.settle()
    assert codes == [E.NONE]
    gone = AWAY._replace(topic_id=DELETED.topic_id)
    codes = write(w, gone)
    w.end_turn()
    answer(w.peers.take(), "Write", E.UNKNOWN_TOPIC_OR_PARTITION)
    await w.settle()
    assert codes == [E.UNKNOWN_TOPIC_OR_PARTITION], "this broker's image lacks it, too"


async def test_only_so_many_calls(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persister_router, "CALLS_MAX", 2)
    first, second, third = write(w, AWAY), write(w, THIRD), write(w, key(1, "other"))
    assert (first, second, third) == ([], [], [E.COORDINATOR_NOT_AVAILABLE])


async def test_an_answer_that_lacks_the_partition(w: World) -> None:
    codes = write(w)
    w.end_turn()
    w.peers.take().answer(write_share_group_state.WriteShareGroupStateResponse(results=[]))
    await w.settle()
    assert codes == [E.UNKNOWN_SERVER_ERROR]


async def test_one_that_is_told_and_fails_harms_nobody(
    w: World, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_code: E) -> None:
        raise RuntimeError("a bug")

    w.router.write(AWAY, **WRITE, done=fail)
    codes = write(w, key(1, "g"))
    w.end_turn()
    answer(w.peers.take(), "Write")
    await w.settle()
    answer(w.peers.take(), "Write")
    await w.settle()
    assert codes == [E.NONE]
    assert "caller of the share coordinator failed" in caplog.text
