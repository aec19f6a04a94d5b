"""Rules of the classic rebalance."""

import pytest

from broker.groups.classic import protocol as classic_protocol
from broker.groups.classic.classic_group import ClassicGroup
from broker.groups.classic.classic_group_state import ClassicGroupState
from broker.groups.state import group_shard as shard_module
from protocol.error_codes import ErrorCode
from tests.harness.groups import (
    INITIAL_DELAY_MS,
    PROTOCOLS,
    REBALANCE_MS,
    SESSION_MS,
    Harness,
    classic,
    subscription,
)

EMPTY = ClassicGroupState.EMPTY
PREPARING = ClassicGroupState.PREPARING_REBALANCE
COMPLETING = ClassicGroupState.COMPLETING_REBALANCE
STABLE = ClassicGroupState.STABLE


@pytest.fixture
def h() -> Harness:
    return Harness()


# -- join: who is let in --


def test_new_member_is_given_an_id_first(h: Harness) -> None:
    """From version 4 a dynamic member has to come back with the id it is given (KIP-394)."""
    answer = h.join(client_id="app")
    assert answer.error is ErrorCode.MEMBER_ID_REQUIRED
    assert answer.response.member_id.startswith("app-")
    assert not h.group().members
    again = h.join(answer.response.member_id)
    assert again.is_parked
    assert list(h.group().members) == [answer.response.member_id]


def test_old_clients_are_added_at_once(h: Harness) -> None:
    """Below version 4 the id comes with the first generation."""
    answer = h.join(version=3)
    assert answer.is_parked
    h.timer.advance(INITIAL_DELAY_MS)
    assert answer.error is ErrorCode.NONE
    assert answer.response.member_id == next(iter(h.group().members))


def test_unknown_group_with_a_member_id_is_unknown_member(h: Harness) -> None:
    """An id of a group that is gone: the client has to start over."""
    assert h.join("somebody").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert not h.shard.groups


def test_unknown_member_of_a_known_group_is_refused(h: Harness) -> None:
    h.stable_group()
    assert h.join("somebody").error is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", PROTOCOLS), ("consumer", ())])
def test_first_member_must_name_its_protocols(
    h: Harness, protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    """Neither type nor list may be empty; and no group is left behind."""
    answer = h.join(protocol_type=protocol_type, protocols=protocols)
    assert answer.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert not h.shard.groups


def test_member_must_share_type_and_a_protocol(h: Harness) -> None:
    h.stable_group()
    for options in ({"protocol_type": "connect"}, {"protocols": (("sticky", b""),)}):
        answer = h.join(**options)
        assert answer.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_first_of_two_protocols_with_one_name_counts(h: Harness) -> None:
    member, _ = h.new_member(protocols=(("a", b"1"), ("b", b""), ("a", b"2")))
    assert h.group().members[member].protocols == (("a", b"1"), ("b", b""))


def test_full_group_refuses_further_members() -> None:
    """group.max.size, KIP-389."""
    h = Harness(group_max_size=2)
    ids, _ = h.stable_group(2)
    assert h.join().error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert h.join(ids[1], protocols=(("range", b"new"),)).is_parked


def test_full_group_in_rebalance_counts_those_who_wait() -> None:
    """When the limit is reached by who has joined already, the last to come is removed."""
    h = Harness(group_max_size=2)
    joins = [h.join(version=3) for _ in range(2)]
    assert all(j.is_parked for j in joins)
    assert h.join(version=3).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    h.settle()
    assert [j.error for j in joins] == [ErrorCode.NONE] * 2


def test_ids_that_nobody_uses_are_bounded(h: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that only ever asks for ids does not fill memory."""
    monkeypatch.setattr(classic_protocol, "PENDING_MEMBERS_MAX", 3)
    assert [h.join().error for _ in range(4)] == [
        *[ErrorCode.MEMBER_ID_REQUIRED] * 3,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
    ]


def test_groups_are_bounded(h: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_module, "GROUPS_MAX", 2)
    assert h.join(group="a").error is ErrorCode.MEMBER_ID_REQUIRED
    assert h.join(group="b").error is ErrorCode.MEMBER_ID_REQUIRED
    assert h.join(group="c").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert h.commit({("t", 0): 1}, group="d") == [ErrorCode.GROUP_MAX_SIZE_REACHED]


def test_unused_id_expires_with_the_session_timeout(h: Harness) -> None:
    member_id = h.join().response.member_id
    h.timer.advance(SESSION_MS)
    assert not h.group().pending_members
    assert h.join(member_id).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_pending_member_is_waited_for(h: Harness) -> None:
    """A rebalance does not end before somebody who was just given an id has joined, or expired."""
    ids, generation = h.stable_group(2)
    pending = h.join().response.member_id
    joins = [h.join(m, protocols=(("range", b"x"),)) for m in ids]
    assert all(j.is_parked for j in joins)
    third = h.join(pending, protocols=(("range", b"x"),))
    assert [j.error for j in [*joins, third]] == [ErrorCode.NONE] * 3
    assert h.group().generation == generation + 1


def test_expiry_of_a_pending_member_ends_the_wait(h: Harness) -> None:
    ids, _ = h.stable_group()
    h.join()
    rejoin = h.join(ids[0])
    assert rejoin.is_parked
    h.timer.advance(SESSION_MS)
    assert rejoin.error is ErrorCode.NONE


def test_the_last_member_leaves_while_another_is_about_to_join(h: Harness) -> None:
    """Nobody is left whose protocols it would have to share; refusing it ends a Java consumer."""
    ids, _ = h.stable_group()
    pending = h.join().response.member_id
    assert h.leave(ids[0]) == [ErrorCode.NONE]
    assert h.group().state is PREPARING
    assert h.join().error is ErrorCode.MEMBER_ID_REQUIRED
    assert h.join(protocol_type="connect").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    join = h.join(pending)
    assert join.is_parked
    h.timer.advance(SESSION_MS)
    assert join.error is ErrorCode.NONE


# -- join: when it is answered --


def test_first_rebalance_waits_for_the_initial_delay(h: Harness) -> None:
    """group.initial.rebalance.delay.ms, KIP-134: half of it when nobody else comes."""
    _, join = h.new_member()
    h.timer.advance(INITIAL_DELAY_MS // 2 - 1)
    assert join.is_parked
    h.timer.advance(1)
    assert join.error is ErrorCode.NONE
    assert join.response.generation_id == 1


def test_newcomers_extend_the_initial_delay(h: Harness) -> None:
    """Up to the rebalance timeout, not further."""
    joins = [h.new_member(rebalance_ms=7_000)[1]]
    for _ in range(17):
        h.timer.advance(400)
        joins.append(h.new_member(rebalance_ms=7_000)[1])
    h.timer.advance(199)
    assert all(j.is_parked for j in joins)  # 6,999 ms
    h.timer.advance(1)
    assert [j.error for j in joins] == [ErrorCode.NONE] * 18


def test_the_wait_ends_when_nobody_comes_any_more(h: Harness) -> None:
    """Half of the delay at least, and until a fifth of it has brought nobody."""
    joins = [h.new_member()[1]]
    for _ in range(10):
        h.timer.advance(INITIAL_DELAY_MS // 20)
        joins.append(h.new_member()[1])
    # The last one came with the end of the first half: two looks find newcomers, the third none.
    h.timer.advance(2 * INITIAL_DELAY_MS // 5 - 1)
    assert all(j.is_parked for j in joins)
    h.timer.advance(1)
    assert [j.error for j in joins] == [ErrorCode.NONE] * 11


def test_a_hundred_that_start_together_wait_for_half_the_delay(h: Harness) -> None:
    joins = []
    for _ in range(100):
        joins.append(h.new_member()[1])
        h.timer.advance(5)
    h.timer.advance(INITIAL_DELAY_MS // 2 - 500)
    assert [j.error for j in joins] == [ErrorCode.NONE] * 100
    assert {j.response.generation_id for j in joins} == {1}


def test_initial_delay_may_be_zero() -> None:
    h = Harness(group_initial_rebalance_delay_ms=0)
    _, join = h.new_member()
    h.timer.advance(0)
    assert join.error is ErrorCode.NONE


def test_only_the_leader_gets_the_list(h: Harness) -> None:
    """Members with their metadata of the selected protocol; for the others none."""
    first, leader_join = h.new_member(protocols=(("range", b"1"),))
    second, other_join = h.new_member(protocols=(("range", b"2"),))
    h.settle()
    assert leader_join.response.leader == other_join.response.leader == first
    assert {m.member_id: m.metadata for m in leader_join.response.members} == {
        first: b"1",
        second: b"2",
    }
    assert other_join.response.members == []
    assert leader_join.response.protocol_name == "range"
    assert leader_join.response.protocol_type == "consumer"


def test_rebalance_ends_when_all_have_rejoined(h: Harness) -> None:
    """Without waiting for any timeout."""
    ids, generation = h.stable_group(3)
    newcomer = h.join(version=3)
    assert h.group().state is PREPARING
    joins = [h.join(m) for m in ids]
    assert [j.error for j in [newcomer, *joins]] == [ErrorCode.NONE] * 4
    assert h.group().generation == generation + 1


def test_who_does_not_rejoin_is_removed(h: Harness) -> None:
    """After the longest rebalance timeout; session timeouts kept alive meanwhile."""
    ids, generation = h.stable_group(2)
    join = h.join(ids[0])
    for _ in range(REBALANCE_MS // 5_000 - 1):
        h.timer.advance(5_000)
        assert h.heartbeat(ids[1], generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert join.is_parked
    h.timer.advance(5_000)
    assert join.error is ErrorCode.NONE
    assert list(h.group().members) == [ids[0]]


def test_leader_that_does_not_rejoin_is_replaced(h: Harness) -> None:
    ids, _ = h.stable_group(2)
    assert h.group().leader_id == ids[0]
    join = h.join(ids[1], protocols=(("range", b"x"),))
    h.timer.advance(REBALANCE_MS)
    assert join.response.leader == ids[1]


def test_follower_that_rejoins_unchanged_is_told_again(h: Harness) -> None:
    """In a stable group it did not get its answer: no rebalance."""
    ids, generation = h.stable_group(2)
    answer = h.join(ids[1])
    assert answer.error is ErrorCode.NONE
    assert answer.response.generation_id == generation
    assert h.group().state is STABLE


def test_leader_that_rejoins_forces_a_rebalance(h: Harness) -> None:
    """It saw metadata change that is not in the members' metadata."""
    ids, _ = h.stable_group(2)
    assert h.join(ids[0]).is_parked
    assert h.group().state is PREPARING


def test_changed_metadata_forces_a_rebalance(h: Harness) -> None:
    ids, _ = h.stable_group(2)
    assert h.join(ids[1], protocols=(("range", b"changed"),)).is_parked


def test_rejoin_before_sync_is_told_again(h: Harness) -> None:
    """In CompletingRebalance; the leader gets the list once more."""
    member, _ = h.new_member()
    h.timer.advance(INITIAL_DELAY_MS)
    answer = h.join(member)
    assert answer.error is ErrorCode.NONE
    assert [m.member_id for m in answer.response.members] == [member]


def test_changed_rejoin_before_sync_starts_over(h: Harness) -> None:
    """Those who wait in SyncGroup are sent back to JoinGroup."""
    (first, _), (second, _) = h.new_member(), h.new_member()
    h.settle()
    sync = h.sync(second, 1)
    h.join(first, protocols=(("range", b"changed"),))
    assert sync.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert h.group().state is PREPARING


def test_second_join_of_a_member_replaces_the_first(h: Harness) -> None:
    """The client has reconnected: the answer goes to the new connection."""
    member, first = h.new_member()
    second = h.join(member)
    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    h.timer.advance(INITIAL_DELAY_MS)
    assert second.error is ErrorCode.NONE


def test_new_member_that_waits_too_long_is_dropped(h: Harness) -> None:
    """Nobody hears of its disconnect while it is parked, so after five minutes it is asked back."""
    ids, generation = h.stable_group(1, rebalance_ms=3_600_000)
    newcomer = h.join(version=3)
    for _ in range(60):
        h.timer.advance(5_000)
        h.heartbeat(ids[0], generation)
    assert newcomer.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert list(h.group().members) == ids


def test_protocol_is_chosen_by_vote(h: Harness) -> None:
    """Among those all members know, each votes for its first."""
    for names in (("a", "b", "c"), ("b", "c", "a"), ("c", "b")):
        h.join(version=3, protocols=tuple((n, b"") for n in names))
    h.settle()
    assert h.group().protocol_name == "b"


# -- sync --


def test_assignment_goes_to_everybody_once_it_is_committed(h: Harness) -> None:
    """Not a moment before the log has it."""
    (first, _), (second, _) = h.new_member(), h.new_member()
    h.settle()
    h.log.hold = True
    follower = h.sync(second, 1)
    leader = h.sync(first, 1, {first: b"1", second: b"2"})
    assert follower.is_parked
    assert leader.is_parked
    assert h.group().state is COMPLETING
    h.log.commit_held()
    assert (leader.response.assignment, follower.response.assignment) == (b"1", b"2")
    assert leader.response.protocol_name == "range"
    assert h.group().state is STABLE


def test_member_without_assignment_gets_an_empty_one(h: Harness) -> None:
    (first, _), (second, _) = h.new_member(), h.new_member()
    h.settle()
    follower = h.sync(second, 1)
    h.sync(first, 1, {first: b"1"})
    assert follower.response.assignment == b""


def test_late_sync_gets_the_assignment_at_once(h: Harness) -> None:
    ids, generation = h.stable_group(2)
    assert h.sync(ids[1], generation).response.assignment == f"of {ids[1]}".encode()


def test_sync_is_checked(h: Harness) -> None:
    ids, generation = h.stable_group(2)
    assert h.sync("somebody", generation).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert h.sync(ids[0], generation + 1).error is ErrorCode.ILLEGAL_GENERATION
    assert h.sync(ids[0], generation, group="other").error is ErrorCode.UNKNOWN_MEMBER_ID
    wrong_type = h.sync(ids[0], generation, protocol_type="connect", protocol_name="range")
    assert wrong_type.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    wrong_name = h.sync(ids[0], generation, protocol_type="consumer", protocol_name="sticky")
    assert wrong_name.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    h.join(ids[0])
    assert h.sync(ids[1], generation).error is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("log_says", "client_sees"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_assignment_that_cannot_be_written_starts_over(
    h: Harness, log_says: ErrorCode, client_sees: ErrorCode
) -> None:
    """Everybody is told, and nobody has an assignment."""
    (first, _), (second, _) = h.new_member(), h.new_member()
    h.settle()
    follower = h.sync(second, 1)
    h.log.fail_with = log_says
    leader = h.sync(first, 1, {first: b"1", second: b"2"})
    assert leader.error is follower.error is client_sees
    assert h.group().state is PREPARING
    assert all(m.assignment == b"" for m in h.group().members.values())


def test_assignment_of_a_generation_that_is_over_is_not_handed_out(h: Harness) -> None:
    """Somebody joined while it was being written."""
    member, _ = h.new_member()
    h.timer.advance(INITIAL_DELAY_MS)
    h.log.hold = True
    sync = h.sync(member, 1, {member: b"1"})
    h.join(version=3)
    assert sync.error is ErrorCode.REBALANCE_IN_PROGRESS
    h.log.commit_held()
    assert h.group().state is PREPARING
    assert h.group().members[member].assignment == b""


def test_assignment_of_the_generation_before_is_not_handed_out(h: Harness) -> None:
    """The next generation has begun, and waits for an assignment of its own."""
    member, _ = h.new_member()
    h.timer.advance(INITIAL_DELAY_MS)
    h.log.hold = True
    h.sync(member, 1, {member: b"1"})
    rejoin = h.join(member, protocols=(("range", b"changed"),))
    assert rejoin.response.generation_id == 2
    sync = h.sync(member, 2)
    h.log.held = h.log.held[:1]
    h.log.commit_held()
    assert sync.is_parked
    assert h.group().state is COMPLETING


def test_members_who_never_sync_are_let_go(h: Harness) -> None:
    """After the rebalance timeout, however many heartbeats they send."""
    (first, _), (second, _) = h.new_member(), h.new_member()
    h.settle()
    h.sync(first, 1, {first: b"1", second: b"2"})
    assert h.group().state is STABLE
    for _ in range(REBALANCE_MS // 5_000):
        h.heartbeat(first, 1)
        h.heartbeat(second, 1)
        h.timer.advance(5_000)
    assert list(h.group().members) == [first]
    assert h.group().state is PREPARING


def test_second_sync_of_a_member_replaces_the_first(h: Harness) -> None:
    (first, _), (second, _) = h.new_member(), h.new_member()
    h.settle()
    lost = h.sync(second, 1)
    again = h.sync(second, 1)
    assert lost.error is ErrorCode.REBALANCE_IN_PROGRESS
    h.sync(first, 1, {second: b"2"})
    assert again.response.assignment == b"2"


# -- heartbeat and session --


def test_heartbeat_is_checked(h: Harness) -> None:
    ids, generation = h.stable_group()
    assert h.heartbeat(ids[0], generation) is ErrorCode.NONE
    assert h.heartbeat(ids[0], generation + 1) is ErrorCode.ILLEGAL_GENERATION
    assert h.heartbeat("somebody", generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert h.heartbeat(ids[0], generation, group="other") is ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeat_before_sync_is_fine(h: Harness) -> None:
    member, _ = h.new_member()
    h.timer.advance(INITIAL_DELAY_MS)
    assert h.heartbeat(member, 1) is ErrorCode.NONE


def test_heartbeat_tells_of_a_rebalance(h: Harness) -> None:
    ids, generation = h.stable_group(2)
    h.join(version=3)
    assert h.heartbeat(ids[0], generation) is ErrorCode.REBALANCE_IN_PROGRESS


def test_session_lasts_from_the_last_heartbeat(h: Harness) -> None:
    ids, generation = h.stable_group(2)
    for _ in range(5):
        h.timer.advance(SESSION_MS - 1)
        assert h.heartbeat(ids[0], generation) in (
            ErrorCode.NONE,
            ErrorCode.REBALANCE_IN_PROGRESS,
        )
        if ids[1] in h.group().members:
            h.heartbeat(ids[1], generation)
    h.timer.advance(SESSION_MS - 1)
    h.heartbeat(ids[0], generation)
    assert ids[1] in h.group().members
    h.timer.advance(1)
    assert ids[1] not in h.group().members
    assert h.group().state is PREPARING


def test_last_session_that_expires_leaves_an_empty_group(h: Harness) -> None:
    h.stable_group()
    h.timer.advance(SESSION_MS)
    assert h.group().state is EMPTY
    assert classic(h.reloaded()).state is EMPTY


def test_parked_sync_excuses_from_heartbeats(h: Harness) -> None:
    """A member waits for its leader longer than its session lasts."""
    (first, _), (second, _) = h.new_member(), h.new_member()
    h.settle()
    follower = h.sync(second, 1)
    for _ in range(4):
        h.timer.advance(SESSION_MS - 1)
        h.heartbeat(first, 1)
    h.sync(first, 1, {second: b"2"})
    assert follower.response.assignment == b"2"
    h.timer.advance(SESSION_MS - 1)
    assert second in h.group().members
    h.timer.advance(1)
    assert second not in h.group().members


def test_leader_that_dies_before_sync_starts_over(h: Harness) -> None:
    (_, _), (second, _) = h.new_member(), h.new_member()
    h.settle()
    follower = h.sync(second, 1)
    h.timer.advance(SESSION_MS)
    assert follower.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert list(h.group().members) == [second]


# -- leave --


def test_leaving_starts_a_rebalance(h: Harness) -> None:
    ids, _ = h.stable_group(2)
    assert h.leave(ids[1]) == [ErrorCode.NONE]
    assert h.group().state is PREPARING
    assert list(h.group().members) == [ids[0]]


def test_last_to_leave_empties_the_group(h: Harness) -> None:
    ids, generation = h.stable_group()
    h.leave(ids[0])
    assert h.group().state is EMPTY
    assert h.group().generation == generation + 1
    assert h.group().protocol_type == "consumer"
    reloaded = classic(h.reloaded())
    assert (reloaded.state, reloaded.generation) == (EMPTY, generation + 1)


def test_each_leaving_member_is_answered(h: Harness) -> None:
    ids, _ = h.stable_group(2)
    pending = h.join().response.member_id
    assert h.leave(ids[0], "somebody", pending) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert h.leave("x", group="other") == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert not h.group().pending_members


def test_leaving_ends_what_is_parked(h: Harness) -> None:
    ids, _ = h.stable_group(2)
    join = h.join(ids[0])
    h.leave(ids[0])
    assert join.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert join.response.member_id == ""


def test_leaving_completes_the_rebalance_that_waited_for_it(h: Harness) -> None:
    ids, _ = h.stable_group(2)
    join = h.join(ids[0])
    h.leave(ids[1])
    assert join.error is ErrorCode.NONE


def test_group_that_was_left_in_its_first_rebalance_ends_empty(h: Harness) -> None:
    member, _ = h.new_member()
    h.leave(member)
    h.timer.advance(INITIAL_DELAY_MS)
    assert h.group().state is EMPTY


# -- what members read --


def test_subscription_of_all_members_is_known(h: Harness) -> None:
    h.join(version=3, protocols=(("range", subscription("a", "b")),))
    h.join(version=3, protocols=(("range", subscription("c")),))
    h.settle()
    assert h.group().subscribed_topics == frozenset("abc")
    assert not h.group().is_subscribed_to("d")


def test_unreadable_subscription_counts_as_everything(h: Harness) -> None:
    """Better no offset deleted than one that is in use."""
    h.stable_group(protocols=(("range", b"?"),))
    assert h.group().is_subscribed_to("anything")


# -- the end --


def test_resigning_answers_everybody(h: Harness) -> None:
    """Join, sync, and no timer is left."""
    h.new_member(group="a")
    waiting, _ = h.new_member(group="a")
    h.settle("a")
    sync = h.sync(waiting, 1, group="a") if h.group("a").leader_id != waiting else None
    _, join = h.new_member(group="b")
    h.join(group="c")
    h.protocol.close()
    assert sync is not None
    assert sync.error is ErrorCode.NOT_COORDINATOR
    assert join.error is ErrorCode.NOT_COORDINATOR
    assert h.timer.pending == 0
    assert all(g.state is ClassicGroupState.DEAD for g in h.shard.groups_of(ClassicGroup))


def test_group_over_capacity_when_loaded_rebalances() -> None:
    """group.max.size was lowered while the broker was down."""
    h = Harness()
    ids, _ = h.stable_group(3)
    small = Harness(h.log, group_max_size=2)
    small.shard = h.reloaded()
    small.protocol = classic_protocol.ClassicProtocol(
        small.shard,
        settings=small.settings,
        environment=small.environment,
    )
    small.protocol.prepare_over_capacity(small.group())
    assert small.group().state is PREPARING
    joins = [small.join(m) for m in ids[:2]]
    assert small.join(ids[2]).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [j.error for j in joins] == [ErrorCode.NONE] * 2
