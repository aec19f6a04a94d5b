"""One shard without a loop, and clients that talk to it."""

from collections.abc import Callable, Mapping
from typing import Any, cast
from uuid import UUID

from broker.controller.images.cluster_image import TopicImage
from broker.coordinator.latest_records import LatestRecords
from broker.coordinator.loader import ShardLoader
from broker.coordinator.slices import Slices
from broker.groups.classic.classic_group import ClassicGroup
from broker.groups.classic.classic_group_state import ClassicGroupState
from broker.groups.classic.join_attempt import JoinAttempt
from broker.groups.classic.protocol import ClassicProtocol
from broker.groups.classic.rebalance import EXTENSION_SHARE, SETTLING_SHARE
from broker.groups.coordinator import READ_SIZE
from broker.groups.offsets.offset_manager import OffsetManager
from broker.groups.replay import OFFSET_KEYS_BELOW, fill_shard
from broker.groups.state.group_shard import GroupShard
from broker.groups.state.offset_store import OffsetAndMetadata
from broker.groups.state.stats import GroupStats
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.hot.offset_commit import (
    CommittedPartition,
    CommittedTopic,
    OffsetCommitRequest,
)
from protocol.internal.consumer_offsets import NO_TOPIC_ID
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from protocol.messages.leave_group import MemberIdentity, MemberResponse
from protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from storage.environment.clock import Clock
from storage.types.topic_partition import TopicPartition
from tests.fakes.broker.coordinator_log import CoordinatorLog
from tests.fakes.broker.offsets_partition import OFFSETS_TOPIC, FakeReplicaManager
from tests.harness.coordinator import BY_NUMBER, Reply, ShardHarness, run_without_loop

PROTOCOLS = (("range", b"r"), ("roundrobin", b"rr"))
SESSION_MS = 10_000
REBALANCE_MS = 60_000
INITIAL_DELAY_MS = 3_000


class Parked(Reply[Any]):
    """A request of the classic protocol that may be answered later."""


def subscription(*topics: str) -> bytes:
    """Metadata of a consumer."""
    names = [topic.encode() for topic in topics]
    return (
        b"\0\0"
        + len(names).to_bytes(4, "big")
        + b"".join(len(name).to_bytes(2, "big") + name for name in names)
        + b"\xff\xff\xff\xff"
    )


class Harness(ShardHarness):
    """A shard with its protocol of classic groups and its offsets.

    With `gathering` commits wait for `end_turn`.
    """

    def __init__(
        self,
        replica_manager: FakeReplicaManager | None = None,
        *topics: TopicImage,
        gathering: bool = False,
        **settings: object,
    ) -> None:
        self.log = replica_manager or FakeReplicaManager()
        config = BrokerConfig(**cast("dict[str, Any]", settings))
        super().__init__(self.log, config, *topics, gathering=gathering)
        self.shard, self.protocol, self.offsets = self.new_shard()

    def new_shard(self) -> tuple[GroupShard, ClassicProtocol, OffsetManager]:
        log = self.new_log(OFFSETS_TOPIC, self.settings.offsets_commit_timeout_ms)
        shard = GroupShard(log, self.clock, GroupStats())
        protocol = ClassicProtocol(shard, settings=self.settings, environment=self.environment)
        offsets = OffsetManager(
            shard, protocol, settings=self.settings, environment=self.environment
        )
        return shard, protocol, offsets

    def reloaded(self, log: FakeReplicaManager | None = None) -> GroupShard:
        """What another broker would make of the log."""
        shard, protocol, _ = self.new_shard()
        log = log or self.log
        run_without_loop(read_back(shard, protocol, log, self.clock))
        return shard

    def group(self, group_id: str = "g") -> ClassicGroup:
        return classic(self.shard, group_id)

    # -- requests --

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        instance: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = PROTOCOLS,
        protocol_type: str = "consumer",
        version: int = 9,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        client_id: str = "client",
    ) -> Parked:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=n, metadata=m) for n, m in protocols],
        )
        parked = Parked()
        attempt = JoinAttempt(
            request,
            api_version=version,
            client_id=client_id,
            client_host="/127.0.0.1",
            reply=parked,
        )
        self.protocol.join(request, attempt)
        return parked

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Parked:
        parked = Parked()
        self.protocol.sync(
            SyncGroupRequest(
                group_id=group,
                generation_id=generation,
                member_id=member_id,
                group_instance_id=instance,
                protocol_type=protocol_type,
                protocol_name=protocol_name,
                assignments=[
                    SyncGroupRequestAssignment(member_id=m, assignment=a)
                    for m, a in (assignments or {}).items()
                ],
            ),
            parked,
        )
        return parked

    def heartbeat(
        self, member_id: str, generation: int, *, group: str = "g", instance: str | None = None
    ) -> ErrorCode:
        return self.protocol.heartbeat(group, member_id, instance, generation)

    def leave(self, *members: tuple[str, str | None] | str, group: str = "g") -> list[ErrorCode]:
        identities = [
            MemberIdentity(member_id=m)
            if isinstance(m, str)
            else MemberIdentity(member_id=m[0], group_instance_id=m[1])
            for m in members
        ]
        codes: list[ErrorCode] = []

        def left(code: ErrorCode, members: list[MemberResponse]) -> None:
            codes.extend(BY_NUMBER[m.error_code] for m in members)
            if code is not ErrorCode.NONE:
                codes.append(code)

        self.protocol.leave(group, identities, left)
        return codes

    def commit(
        self,
        offsets: Mapping[tuple[str, int], int | tuple[int, str]],
        *,
        group: str = "g",
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        version: int = 9,
        retention_ms: int = -1,
        topic_id: UUID = NO_TOPIC_ID,
    ) -> list[ErrorCode | None]:
        """Outcome of each partition; None while it is parked."""
        return self.commit_later(
            offsets,
            group=group,
            member_id=member_id,
            generation=generation,
            instance=instance,
            version=version,
            retention_ms=retention_ms,
            topic_id=topic_id,
        )()

    def commit_later(
        self,
        offsets: Mapping[tuple[str, int], int | tuple[int, str]],
        *,
        group: str = "g",
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        version: int = 9,
        retention_ms: int = -1,
        topic_id: UUID = NO_TOPIC_ID,
    ) -> Callable[[], list[ErrorCode | None]]:
        """Commit; what is returned tells the outcome at the moment it is called."""
        topics: dict[str, list[CommittedPartition]] = {}
        commits = []
        for (topic, partition), offset in offsets.items():
            number, metadata = offset if isinstance(offset, tuple) else (offset, "")
            commits.append(CommittedPartition(partition, number, -1, metadata))
            topics.setdefault(topic, []).append(commits[-1])
        listed = [CommittedTopic(topic, topic_id, each) for topic, each in topics.items()]
        request = OffsetCommitRequest(group, generation, member_id, instance, retention_ms, listed)
        codes: list[ErrorCode] = []
        self.offsets.commit(request, version, codes.append)

        def outcome() -> list[ErrorCode | None]:
            if not codes:
                return [None] * len(commits)
            (code,) = codes
            return [
                code if code is not ErrorCode.NONE else BY_NUMBER[c.error_code] for c in commits
            ]

        return outcome

    # -- what tests want to have behind them --

    def new_member(self, **options: Any) -> tuple[str, Parked]:
        """Get an id and join with it."""
        member_id = self.join(**options).response.member_id
        return member_id, self.join(member_id, **options)

    def settle(self, group: str = "g") -> None:
        """Let a first rebalance come to its end, and not a moment longer than that."""
        while self.group(group).state is ClassicGroupState.PREPARING_REBALANCE:
            self.timer.advance(INITIAL_DELAY_MS // (EXTENSION_SHARE * SETTLING_SHARE))

    def stable_group(self, count: int = 1, **options: Any) -> tuple[list[str], int]:
        """A group of `count` members that has its assignment; the first one leads."""
        members = [self.new_member(**options) for _ in range(count)]
        self.settle(options.get("group", "g"))
        generation = members[0][1].response.generation_id
        leader = members[0][1].response.leader
        ids = [member_id for member_id, _ in members]
        followers = [self.sync(m, generation) for m in ids if m != leader]
        self.sync(leader, generation, {m: f"of {m}".encode() for m in ids})
        assert all(f.error is ErrorCode.NONE for f in followers)
        return ids, generation


def classic(shard: GroupShard, group_id: str = "g") -> ClassicGroup:
    """A group that is there and is a classic one."""
    group = shard.group(group_id, ClassicGroup)
    assert group is not None
    return group


def is_simple(group: ClassicGroup) -> bool:
    """Whether the group only stores offsets."""
    return group.protocol_type is None and not group.members and not group.pending_members


def stored(shard: GroupShard, group: str = "g") -> dict[tuple[str, int], int]:
    """Committed offsets of a group."""
    return {(topic, p): offset for topic, p, offset in shard.offsets.offsets(group)}


def committed(shard: GroupShard, topic: str, partition: int, group: str = "g") -> OffsetAndMetadata:
    found = shard.offsets.get(group, topic, partition)
    assert found is not None
    return found


async def read_back(
    shard: GroupShard, protocol: ClassicProtocol, log: CoordinatorLog, clock: Clock
) -> None:
    """Load the first partition into an empty shard."""
    slices = Slices(clock)
    read = LatestRecords(transactional_below=OFFSET_KEYS_BELOW)
    loader = ShardLoader(
        log,
        TopicPartition(OFFSETS_TOPIC, 0),
        read,
        read_size=READ_SIZE,
        slices=slices,
        is_wanted=lambda: True,
    )
    await loader.load(0, log.ends[0])
    await fill_shard(shard, protocol, read, slices)
