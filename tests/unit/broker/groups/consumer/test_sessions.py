"""Members that do not heartbeat, or do not revoke, are fenced; others are not."""

import pytest

from broker.controller.configs.group_settings import ConsumerGroupSettings
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.member import ConsumerGroupMember, MemberState
from broker.groups.consumer.sessions import NOT_REVOKED, SESSION_OVER, MemberSessions
from protocol.internal.consumer_group_records import ClassicMemberMetadata
from tests.fakes.environment import FakeEnvironment


class World:
    def __init__(self) -> None:
        self.environment = FakeEnvironment()
        self.group = ConsumerGroup("g")
        self.expired: list[tuple[str, str]] = []
        self.sessions = MemberSessions(
            self.environment,
            lambda _: ConsumerGroupSettings(1_000, 100),
            lambda _, member_id, reason: self.expired.append((member_id, reason)),
        )

    def start(self, member: ConsumerGroupMember) -> None:
        self.group.update_member(member)
        self.sessions.start(self.group, member)


@pytest.fixture
def world() -> World:
    return World()


def test_session_ends_without_a_heartbeat(world: World) -> None:
    world.start(ConsumerGroupMember("m"))
    world.environment.timer.advance(999)
    world.sessions.touch(world.group, "m")
    world.environment.timer.advance(999)
    assert world.expired == []
    world.environment.timer.advance(1)
    assert world.expired == [("m", SESSION_OVER)]


def test_classic_member_has_the_session_that_it_asked_for(world: World) -> None:
    world.start(ConsumerGroupMember("m", classic=ClassicMemberMetadata(5_000, ())))
    world.environment.timer.advance(4_999)
    assert world.expired == []
    world.environment.timer.advance(1)
    assert world.expired == [("m", SESSION_OVER)]


def revoking(epoch: int) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        "m", epoch, rebalance_timeout_ms=500, state=MemberState.UNREVOKED_PARTITIONS
    )


def test_revocation_has_the_rebalance_timeout(world: World) -> None:
    world.start(revoking(3))
    world.environment.timer.advance(500)
    assert world.expired == [("m", NOT_REVOKED)]


def test_revocation_in_time_and_later_ones_start_anew(world: World) -> None:
    world.start(revoking(3))
    world.environment.timer.advance(400)
    world.sessions.await_revocation(world.group, ConsumerGroupMember("m", 3))
    world.environment.timer.advance(200)
    world.group.update_member(revoking(4))
    world.sessions.await_revocation(world.group, revoking(4))
    world.environment.timer.advance(399)
    assert world.expired == []


def test_removed_member_is_not_fenced(world: World) -> None:
    world.start(revoking(3))
    world.group.remove_member("m")
    world.environment.timer.advance(10_000)
    assert world.expired == []
