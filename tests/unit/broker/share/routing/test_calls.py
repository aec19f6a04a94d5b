"""Calls that may go as one."""

from broker.share.routing import calls
from broker.share.routing.calls import MERGED_BATCHES_MAX, Call
from protocol.error_codes import ErrorCode as E
from protocol.internal.share_state import StateBatch
from tests.unit.broker.share.routing.conftest import FakeCoordinator, key


def write(count: int, codes: list[E], *, first: int = 0) -> Call:
    return calls.write(
        key(0),
        state_epoch=1,
        leader_epoch=2,
        start_offset=first,
        delivery_complete_count=count,
        batches=[StateBatch(first + n, first + n, 2, 1) for n in range(count)],
        answer=lambda code, _: codes.append(code),
    )


def test_a_merged_write_is_asked_of_the_local_coordinator_as_one() -> None:
    codes: list[E] = []
    one = write(2, codes)
    assert calls.merge(one, write(1, codes, first=7))
    local = FakeCoordinator()
    outcomes: list[E] = []
    one.local(local, lambda code, _: outcomes.append(code))
    ((_, _, what),) = local.asked
    assert what == {
        "state_epoch": 1,
        "leader_epoch": 2,
        "start_offset": 7,
        "delivery_complete_count": 1,
        "batches": [StateBatch(0, 0, 2, 1), StateBatch(1, 1, 2, 1), StateBatch(7, 7, 2, 1)],
    }
    assert outcomes == [E.NONE]
    for answer in one.answers:
        answer(E.NOT_COORDINATOR, None)
    assert codes == [E.NOT_COORDINATOR] * 2


def test_a_write_takes_in_only_so_much() -> None:
    one = write(MERGED_BATCHES_MAX, [])
    assert not calls.merge(one, write(1, []))
    assert not calls.merge(write(1, []), calls.delete(key(0), lambda code, _: None))
    assert not calls.merge(calls.delete(key(0), lambda code, _: None), write(1, []))
