"""Rules of static members (KIP-345, KIP-814)."""

import pytest

from broker.groups.classic.classic_group_state import ClassicGroupState
from protocol.error_codes import ErrorCode
from tests.harness.groups import SESSION_MS, Harness, classic

PREPARING = ClassicGroupState.PREPARING_REBALANCE
STABLE = ClassicGroupState.STABLE

LEADER = "i-0"
FOLLOWER = "i-1"


@pytest.fixture
def h() -> Harness:
    return Harness()


def static_group(h: Harness) -> tuple[str, str, int]:
    """Two static members with their assignment: (leader's id, follower's id, generation)."""
    joins = [h.join(instance=LEADER), h.join(instance=FOLLOWER)]
    h.settle()
    leader, follower = (j.response.member_id for j in joins)
    generation = joins[0].response.generation_id
    h.sync(follower, generation, instance=FOLLOWER)
    h.sync(leader, generation, {leader: b"L", follower: b"F"}, instance=LEADER)
    assert h.group().state is STABLE
    return leader, follower, generation


def test_static_member_is_added_without_a_second_round(h: Harness) -> None:
    """Its instance id is its name: no MEMBER_ID_REQUIRED. The member id begins with it."""
    join = h.join(instance="i")
    assert join.is_parked
    h.settle()
    assert join.response.member_id.startswith("i-")


def test_returning_follower_keeps_the_generation(h: Harness) -> None:
    """Same protocols, new member id: no rebalance, and it gets its old assignment."""
    _, old, generation = static_group(h)
    join = h.join(instance=FOLLOWER)
    assert join.error is ErrorCode.NONE
    new = join.response.member_id
    assert new != old
    assert join.response.generation_id == generation
    assert join.response.members == []
    assert join.response.skip_assignment is False
    assert h.group().state is STABLE
    assert h.sync(new, generation, instance=FOLLOWER).response.assignment == b"F"


def test_returning_leader_skips_the_assignment(h: Harness) -> None:
    """Version 9: it leads, knows the members, and leaves the assignment as it is."""
    _, follower, _ = static_group(h)
    join = h.join(instance=LEADER, version=9)
    new = join.response.member_id
    assert join.response.leader == new == h.group().leader_id
    assert join.response.skip_assignment is True
    assert {m.member_id for m in join.response.members} == {new, follower}


def test_returning_leader_of_old_version_is_told_its_old_id_leads(h: Harness) -> None:
    """Below version 9: so that it computes no assignment, which nobody would take."""
    old, _, _ = static_group(h)
    join = h.join(instance=LEADER, version=8)
    assert join.response.leader == old
    assert join.response.member_id != old
    assert join.response.members == []
    assert h.group().leader_id == join.response.member_id


def test_replaced_member_is_fenced(h: Harness) -> None:
    """Whatever the former process sends."""
    _, old, generation = static_group(h)
    h.join(instance=FOLLOWER)
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert h.heartbeat(old, generation, instance=FOLLOWER) is fenced
    assert h.sync(old, generation, instance=FOLLOWER).error is fenced
    assert h.join(old, instance=FOLLOWER).error is fenced
    assert h.leave((old, FOLLOWER)) == [fenced]
    commit = h.commit({("t", 0): 1}, member_id=old, generation=generation, instance=FOLLOWER)
    assert commit == [fenced]
    assert h.heartbeat(old, generation) is ErrorCode.UNKNOWN_MEMBER_ID


def test_parked_requests_of_a_replaced_member_are_fenced(h: Harness) -> None:
    join = h.join(instance=FOLLOWER)
    second = h.join(instance=FOLLOWER)
    assert join.error is ErrorCode.FENCED_INSTANCE_ID
    h.settle()
    assert second.error is ErrorCode.NONE
    follower = h.join(instance="x")
    rejoin = h.join(second.response.member_id, instance=FOLLOWER)
    assert follower.error is rejoin.error is ErrorCode.NONE
    sync = h.sync(follower.response.member_id, 2, instance="x")
    again = h.join(instance="x")
    assert sync.error is ErrorCode.FENCED_INSTANCE_ID
    assert again.is_parked
    assert h.group().state is PREPARING


def test_unknown_instance_is_unknown_member(h: Harness) -> None:
    static_group(h)
    assert h.heartbeat("x", 1, instance="other") is ErrorCode.UNKNOWN_MEMBER_ID
    assert h.join("x", instance="other").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_new_id_is_in_the_log_before_it_is_told(h: Harness) -> None:
    """After a crash the coordinator must know the member by it."""
    static_group(h)
    h.log.hold = True
    join = h.join(instance=FOLLOWER)
    assert join.is_parked
    h.log.commit_held()
    assert join.error is ErrorCode.NONE
    reloaded = classic(h.reloaded())
    assert reloaded.static_members[FOLLOWER] == join.response.member_id
    assert reloaded.members[join.response.member_id].assignment == b"F"


def test_new_id_that_cannot_be_written_is_taken_back(h: Harness) -> None:
    """The former member goes on as if nothing had been."""
    _, old, generation = static_group(h)
    h.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert h.join(instance=FOLLOWER).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert h.group().state is STABLE
    assert h.group().static_members[FOLLOWER] == old
    assert h.heartbeat(old, generation, instance=FOLLOWER) is ErrorCode.NONE
    assert h.group().awaiting_join == 0


def test_return_with_other_metadata_keeps_the_generation_if_the_protocol_stays(
    h: Harness,
) -> None:
    static_group(h)
    join = h.join(instance=FOLLOWER, protocols=(("range", b"new"), ("roundrobin", b"")))
    assert join.error is ErrorCode.NONE
    assert h.group().state is STABLE


def test_return_that_changes_the_protocol_rebalances(h: Harness) -> None:
    static_group(h)
    join = h.join(instance=FOLLOWER, protocols=(("roundrobin", b""),))
    assert join.is_parked
    assert h.group().state is PREPARING


def test_return_before_sync_rebalances(h: Harness) -> None:
    """The leader is about to assign to an id that is gone."""
    joins = [h.join(instance=LEADER), h.join(instance=FOLLOWER)]
    h.settle()
    assert joins[0].error is ErrorCode.NONE
    assert h.join(instance=FOLLOWER).is_parked
    assert h.group().state is PREPARING


def test_static_member_may_miss_a_rebalance(h: Harness) -> None:
    """Within its session timeout it stays, though it did not rejoin."""
    leader, follower, generation = static_group(h)
    h.group().members[follower].rebalance_timeout_ms = 5_000
    join = h.join(leader, instance=LEADER, rebalance_ms=5_000)
    h.timer.advance(4_000)
    h.heartbeat(follower, generation, instance=FOLLOWER)
    h.timer.advance(1_000)
    assert join.error is ErrorCode.NONE
    assert set(h.group().members) == {leader, follower}


def test_only_absent_static_members_wait_for_their_sessions(h: Harness) -> None:
    """Nobody has joined: the rebalance is put off until somebody comes or all have expired."""
    _, _, _ = static_group(h)
    dynamic, _ = h.new_member()
    h.leave(dynamic)
    assert h.group().state is PREPARING
    h.timer.advance(SESSION_MS)
    assert h.group().state is ClassicGroupState.EMPTY


def test_administrator_removes_by_instance_id(h: Harness) -> None:
    """Without a member id (kafka-consumer-groups --delete-members and the like)."""
    leader, _, _ = static_group(h)
    assert h.leave(("", FOLLOWER), ("", "other"), ("", None)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert list(h.group().members) == [leader]
    assert h.group().state is PREPARING


def test_static_members_survive_a_reload(h: Harness) -> None:
    leader, follower, _ = static_group(h)
    assert classic(h.reloaded()).static_members == {LEADER: leader, FOLLOWER: follower}
