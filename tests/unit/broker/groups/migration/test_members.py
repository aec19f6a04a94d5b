"""Classic members of a consumer group."""

from typing import Any

import pytest

from broker.groups.migration.member_rules import waits_for_partitions
from protocol.error_codes import ErrorCode
from tests.harness.migration import (
    MigrationHarness,
    T,
    wants,
)

REBALANCE_MS = 60_000


@pytest.fixture
def h() -> MigrationHarness:
    """A group of the new protocol with one member, `new`, that owns everything."""
    made = MigrationHarness()
    made.joined_new("new")
    return made


def newcomer(h: MigrationHarness) -> str:
    """A classic member that has joined and waits for partitions."""
    member_id = h.join(protocols=wants()).response.member_id
    h.rejoin(member_id)
    return str(member_id)


def test_a_classic_member_joins_a_consumer_group(h: MigrationHarness) -> None:
    """It is given an id, joins with it, and gets partitions when they are free."""
    first = h.join(protocols=wants(names=("range", "roundrobin")))
    assert first.error is ErrorCode.MEMBER_ID_REQUIRED
    assert not h.modern.classic_member_count
    name = first.response.member_id
    join = h.join(name, protocols=wants(names=("range", "roundrobin")))
    h.timer.advance(1_000)
    answer = join.response
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert (answer.leader, answer.members, answer.skip_assignment) == ("", [], False)
    assert answer.generation_id == h.modern.group_epoch == 2
    member = h.modern.members[name]
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert member.assigned == {}
    assert waits_for_partitions(h.modern, member)
    assert h.heartbeat(name, 2) is ErrorCode.NONE
    kept = h.beat("new", 1).partitions
    assert kept is not None
    assert len(kept) == 2
    # It has not said yet that it gave the others back.
    assert h.heartbeat(name, 2) is ErrorCode.NONE
    h.beat("new", 1, owned=kept)
    assert not waits_for_partitions(h.modern, h.modern.members[name])
    assert h.heartbeat(name, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    epoch, owned = h.rejoin(name)
    assert epoch == 2
    assert sorted([*owned, *kept]) == [0, 1, 2, 3]
    assert h.heartbeat(name, 2) is ErrorCode.NONE


def test_old_clients_get_an_id_and_join_at_once(h: MigrationHarness) -> None:
    """Below version 4 there is no second JoinGroup."""
    join = h.join(version=3, protocols=wants())
    h.timer.advance(1_000)
    assert join.error is ErrorCode.NONE
    assert join.response.member_id in h.modern.members


@pytest.mark.parametrize(
    "options",
    [
        {"protocol_type": "connect"},
        {"protocols": ()},
        {"protocols": (("range", b"\0"),), "member_id": "mine"},
    ],
)
def test_only_consumers_may_join(h: MigrationHarness, options: dict[str, Any]) -> None:
    """Whose subscription the coordinator can read."""
    refused = h.join(**({"protocols": wants()} | options))
    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert refused.response.member_id == ""


def test_an_id_is_given_before_the_subscription_is_read(h: MigrationHarness) -> None:
    """It is that of the second JoinGroup which counts."""
    first = h.join(protocols=(("range", b""),))
    assert first.error is ErrorCode.MEMBER_ID_REQUIRED
    joined = h.join(protocols=wants(), member_id=first.response.member_id)
    h.timer.advance(1_000)
    assert joined.error is ErrorCode.NONE


def test_classic_members_agree_on_a_protocol(h: MigrationHarness) -> None:
    """Else the group could never become a classic one again."""
    newcomer(h)
    refused = h.join(protocols=wants(names=("roundrobin",)))
    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    accepted = h.join(protocols=wants(names=("roundrobin", "range")))
    assert accepted.error is ErrorCode.MEMBER_ID_REQUIRED


def test_the_group_has_a_size() -> None:
    h = MigrationHarness(group_consumer_max_size=1)
    h.joined_new("new")
    assert h.join(protocols=wants()).error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_requests_of_strangers(h: MigrationHarness) -> None:
    """As in a classic group; members of the new protocol are strangers here too."""
    name = newcomer(h)
    epoch = h.modern.members[name].member_epoch
    for member_id in ("nobody", "new"):
        assert h.heartbeat(member_id, epoch) is ErrorCode.UNKNOWN_MEMBER_ID
        assert h.sync(member_id, epoch).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert h.heartbeat(name, epoch + 1) is ErrorCode.ILLEGAL_GENERATION
    assert h.sync(name, epoch - 1).error is ErrorCode.ILLEGAL_GENERATION
    assert h.heartbeat(name, epoch, instance="i") is ErrorCode.UNKNOWN_MEMBER_ID
    for wrong in (
        h.sync(name, epoch, protocol_type="connect"),
        h.sync(name, epoch, protocol_name="roundrobin"),
    ):
        assert wrong.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    right = h.sync(name, epoch, protocol_type="consumer", protocol_name="range")
    assert right.response.protocol_name == "range"


def test_sync_tells_to_join_again(h: MigrationHarness) -> None:
    """The group has moved on since JoinGroup."""
    name = newcomer(h)
    epoch = h.modern.members[name].member_epoch
    h.joined_new("another")
    assert h.sync(name, epoch).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_offsets_are_committed_with_the_generation(h: MigrationHarness) -> None:
    """By clients of any version; a wrong one is that of the classic protocol."""
    name = newcomer(h)
    epoch = h.modern.members[name].member_epoch
    for version in (2, 9):
        assert h.commit({("t", 0): 1}, member_id=name, generation=epoch, version=version) == [
            ErrorCode.NONE
        ]
    assert h.commit({("t", 0): 1}, member_id=name, generation=epoch + 1) == [
        ErrorCode.ILLEGAL_GENERATION
    ]


# -- static members --


def test_a_static_member_keeps_its_place(h: MigrationHarness) -> None:
    """Also when it changes its protocol; its old id is fenced."""
    first = h.join(instance="i", protocols=wants())
    h.timer.advance(1_000)
    name, epoch = first.response.member_id, first.response.generation_id
    assert h.modern.static_members == {"i": name}
    again = h.join(instance="i", protocols=wants())
    h.timer.advance(1_000)
    heir = again.response.member_id
    assert heir != name
    assert again.response.generation_id == h.modern.group_epoch == epoch
    assert h.modern.static_members == {"i": heir}
    assert h.heartbeat(name, epoch, instance="i") is ErrorCode.FENCED_INSTANCE_ID
    assert h.join(name, instance="i", protocols=wants()).error is ErrorCode.FENCED_INSTANCE_ID
    assert h.join("x", instance="j", protocols=wants()).error is ErrorCode.UNKNOWN_MEMBER_ID
    modern = h.joined_new("modern", instance_id="i")
    assert modern.error is ErrorCode.NONE
    assert h.modern.classic_member_count == 0


# -- leave --


def test_leaving_of_several(h: MigrationHarness) -> None:
    """Each gets its own answer, and the group one new epoch."""
    one, two = newcomer(h), newcomer(h)
    static = h.join(instance="i", protocols=wants())
    h.timer.advance(1_000)
    epoch = h.modern.group_epoch
    assert h.leave(one, "nobody", ("wrong", "i"), ("", "i"), ("", "j")) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert set(h.modern.members) == {"new", two}
    assert static.response.member_id not in h.modern.members
    assert h.modern.group_epoch == epoch + 1
    assert h.leave("nobody") == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert h.modern.group_epoch == epoch + 1


def test_the_last_one_leaves_an_empty_group(h: MigrationHarness) -> None:
    name = newcomer(h)
    assert h.leave("new", name) == [ErrorCode.NONE] * 2
    assert h.modern.is_empty
    assert h.heartbeat(name, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert h.sync(name, 2).error is ErrorCode.UNKNOWN_MEMBER_ID


# -- time --


def test_a_silent_member_is_fenced(h: MigrationHarness) -> None:
    """After its own session timeout, not the group's."""
    name = newcomer(h)
    h.timer.advance(9_999)
    assert h.heartbeat(name, h.modern.members[name].member_epoch) is ErrorCode.NONE
    h.timer.advance(10_000)
    assert name not in h.modern.members


def test_a_member_that_does_not_join_again_is_fenced(h: MigrationHarness) -> None:
    """It has its rebalance timeout from when it was told first, however often it asks."""
    name = newcomer(h)
    epoch = h.modern.members[name].member_epoch
    h.joined_new("another")
    for _ in range(REBALANCE_MS // 6_000):
        assert h.heartbeat(name, epoch) is ErrorCode.REBALANCE_IN_PROGRESS
        h.timer.advance(6_000)
        for other in ("new", "another"):
            h.beat(other, h.modern.members[other].member_epoch)
    assert name not in h.modern.members


def test_a_member_that_does_not_sync_is_fenced(h: MigrationHarness) -> None:
    """Heartbeats alone do not keep it."""
    name = h.join(protocols=wants()).response.member_id
    join = h.join(name, protocols=wants())
    h.timer.advance(1_000)
    epoch = join.response.generation_id
    for _ in range(REBALANCE_MS // 6_000):
        assert h.heartbeat(name, epoch) in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
        h.beat("new", h.modern.members["new"].member_epoch, owned=())
        h.timer.advance(6_000)
    assert name not in h.modern.members
    assert "new" in h.modern.members


def test_joining_again_stops_the_clock(h: MigrationHarness) -> None:
    name = newcomer(h)
    epoch = h.modern.members[name].member_epoch
    h.joined_new("another")
    assert h.heartbeat(name, epoch) is ErrorCode.REBALANCE_IN_PROGRESS
    epoch, _ = h.rejoin(name)
    for _ in range(3 * REBALANCE_MS // 6_000):
        for other in ("new", "another"):
            h.beat(other, h.modern.members[other].member_epoch, owned=())
        code = h.heartbeat(name, h.modern.members[name].member_epoch)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            h.rejoin(name)
        h.timer.advance(6_000)
    assert name in h.modern.members
    assert h.modern.members[name].assigned.get(T)


# -- a log that takes no records --


def test_while_the_log_lacks_replicas_nobody_comes_or_goes(h: MigrationHarness) -> None:
    """The shard is not loaded again for it, whoever asks how often."""
    name = newcomer(h)
    epoch = h.modern.members[name].member_epoch
    h.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert h.join(name, protocols=wants()).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert h.join(protocols=wants(), version=3).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert h.leave(name) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert h.heartbeat(name, epoch) is ErrorCode.NONE
    assert sorted(h.modern.members) == sorted([name, "new"])
    assert h.gave_up == 0
    h.log.fail_with = None
    assert h.leave(name) == [ErrorCode.NONE]
    assert list(h.modern.members) == ["new"]


@pytest.mark.parametrize("joins", [True, False])
def test_who_has_to_join_or_sync_is_timed_again_once_there_are_replicas(
    h: MigrationHarness, joins: bool
) -> None:
    """Its heartbeats alone do not keep it, also where its time was over when nobody was fenced."""
    if joins:
        name = newcomer(h)
        epoch = h.modern.members[name].member_epoch
        h.joined_new("another")
        assert h.heartbeat(name, epoch) is ErrorCode.REBALANCE_IN_PROGRESS
    else:
        name = h.join(protocols=wants()).response.member_id
        join = h.join(name, protocols=wants())
        h.timer.advance(1_000)
        epoch = join.response.generation_id

    def pass_rebalance_time() -> None:
        for _ in range(REBALANCE_MS // 6_000 + 1):
            assert h.heartbeat(name, epoch) in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
            for other in sorted({*h.modern.members} - {name}):
                h.beat(other, h.modern.members[other].member_epoch)
            h.timer.advance(6_000)
            if name not in h.modern.members:
                return

    h.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    pass_rebalance_time()
    assert name in h.modern.members
    assert h.gave_up == 0
    h.log.fail_with = None
    pass_rebalance_time()
    assert name not in h.modern.members
