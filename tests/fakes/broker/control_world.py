"""Several controllers on one store in memory: brokers as their keys, without logs or network.

Each broker has its own image, which may be held back as behind a slow watch. The store refuses what
a deposed controller writes, and checks that every change of the cluster's state carries the
controller epoch in force.
"""

import asyncio
from collections.abc import Mapping, Sequence
from uuid import UUID

from typing_extensions import override

from broker.controller.active.active_controller import ActiveController
from broker.controller.active.guarded_writes import GuardedWrites
from broker.controller.controller import Controller
from broker.controller.election import ControllerElection
from broker.controller.images.broker_records import (
    BrokerEndpoint,
    BrokerRegistration,
    FailedDirectories,
    LastRun,
    broker_key,
    draining_key,
    encode_draining,
    encode_failed,
    encode_live,
    encode_registration,
    live_key,
    offline_key,
)
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.controller_history import WRITES_KEY
from broker.controller.images.features import SUPPORTED, SupportedRange
from broker.controller.images.metadata_records import (
    CONFIGS,
    CONTROLLER_KEY,
    FEATURES_KEY,
    FENCES,
    PARTITIONS,
    TOPICS,
)
from broker.controller.store.metadata_store import (
    Changes,
    Compare,
    Delete,
    LeaseNotFoundError,
    Operation,
    Put,
    Target,
    TxnResult,
    Watch,
)
from config.broker import BrokerConfig
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from storage.environment.randomness import SeededRandomness
from tests.fakes.broker.metadata_store import MemoryStore
from tests.fakes.loop_turns import turns
from tests.fakes.timer import ManualTimer

RULE_A = (TOPICS, PARTITIONS, CONFIGS, FEATURES_KEY, FENCES)
"""Keys that only the controller writes."""

LEASE_MS = 1_000_000_000


class WatchedStore(MemoryStore):
    """Checks each transaction that changes what only the controller may change."""

    is_open = False
    """Before there are brokers, the cluster is made by whoever is first."""

    @override
    async def txn(
        self,
        compare: Sequence[Compare] = (),
        then: Sequence[Operation] = (),
        otherwise: Sequence[Operation] = (),
    ) -> TxnResult:
        result = await super().txn(compare, then, otherwise)
        changed = [
            operation.key
            for operation in then
            if isinstance(operation, Put | Delete) and operation.key.startswith(RULE_A)
        ]
        if self.is_open and result.succeeded and changed:
            epochs = [
                condition.operand
                for condition in compare
                if condition.key == CONTROLLER_KEY and condition.target is Target.CREATE_REVISION
            ]
            assert len(epochs) == 1, f"{changed} written by nobody"
            assert any(
                isinstance(operation, Put) and operation.key == WRITES_KEY for operation in then
            )
        return result


class GatedWatch:
    """A watch that delivers nothing while its gate is closed."""

    def __init__(self, watch: Watch, gate: asyncio.Event) -> None:
        self._watch = watch
        self._gate = gate

    def __aiter__(self) -> "GatedWatch":
        return self

    async def __anext__(self) -> Changes:
        changes = await anext(self._watch)
        await self._gate.wait()
        return changes

    async def request_progress(self) -> None:
        await self._watch.request_progress()

    async def aclose(self) -> None:
        self._gate.set()
        await self._watch.aclose()


class NodeStore:
    """The store as one broker sees it: with a watch of its own that may be slow."""

    def __init__(self, store: MemoryStore) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self._store = store
        self.get, self.range, self.txn = store.get, store.range, store.txn
        self.compact, self.aclose = store.compact, store.aclose
        self.grant_lease, self.revoke_lease = store.grant_lease, store.revoke_lease
        self.keep_lease_alive = store.keep_lease_alive

    def watch(self, prefix: str, from_revision: int = 0) -> GatedWatch:
        return GatedWatch(self._store.watch(prefix, from_revision), self.gate)


class Member:
    """A broker's place in the cluster: its keys, put and taken away by the test."""

    def __init__(self, world: "ControlWorld", node_id: int) -> None:
        self._world = world
        self.node_id = node_id
        self.lease = 0
        self.broker_epoch = 0
        self._incarnation = UUID(int=0)

    async def register(
        self,
        ended: LastRun = LastRun.CLEAN,
        rack: str | None = None,
        directories: tuple[UUID, ...] = (),
        features: Mapping[str, SupportedRange] = SUPPORTED,
    ) -> None:
        """A new life of the process."""
        store = self._world.store
        await self.end_lease()
        self._world.lives += 1
        self._incarnation = UUID(int=self._world.lives)
        registration = BrokerRegistration(
            self._incarnation,
            {"PLAINTEXT": BrokerEndpoint("broker.example", 9000 + self.node_id)},
            rack,
            features,
            directories=directories,
            ended=ended,
        )
        self.lease = await store.grant_lease(LEASE_MS)
        result = await store.txn(
            then=[
                Put(broker_key(self.node_id), encode_registration(registration)),
                Put(live_key(self.node_id), encode_live(self._incarnation), self.lease),
            ]
        )
        self.broker_epoch = result.revision

    async def end_lease(self) -> None:
        """As when the process has died, or the store has ended it too early."""
        lease, self.lease = self.lease, 0
        if lease:
            try:
                await self._world.store.revoke_lease(lease)
            except LeaseNotFoundError:
                return

    async def return_(self) -> None:
        """The same process puts its key again."""
        if self.lease or not self.broker_epoch:
            return
        store = self._world.store
        self.lease = await store.grant_lease(LEASE_MS)
        await store.txn(
            then=[Put(live_key(self.node_id), encode_live(self._incarnation), self.lease)]
        )

    async def fail_directories(self, *directories: UUID, full: tuple[UUID, ...] = ()) -> None:
        """All that have failed in this life, and all that have no room now."""
        failed = FailedDirectories(self.broker_epoch, directories, full)
        await self._world.store.txn(then=[Put(offline_key(self.node_id), encode_failed(failed))])

    async def drain(self) -> None:
        """It wants to stop."""
        if self.lease:
            put = Put(draining_key(self.node_id), encode_draining(self.broker_epoch), self.lease)
            await self._world.store.txn(then=[put])


class ControlNode:
    """One broker's controller, election and image."""

    def __init__(
        self, world: "ControlWorld", member: Member, controller: Controller, gate: asyncio.Event
    ) -> None:
        self.member = member
        self.gate = gate
        self.controller = controller
        node_id = member.node_id
        self.deposed = 0
        self.active = ActiveController(
            node_id=node_id,
            changes=controller.changes,
            image=lambda: controller.image,
            rules=controller.config_rules,
            writes=lambda epoch: GuardedWrites(
                world.store,
                node_id=node_id,
                epoch=epoch,
                timer=world.timer,
                on_deposed=self._on_deposed,
            ),
            timer=world.timer,
            clock=world.timer.clock,
        )
        self.election = ControllerElection(
            world.store,
            node_id=node_id,
            member=member,
            timer=world.timer,
            elected=self.active,
            start=controller.changes.start_unawaited,
        )
        controller.subscribe_now(self.active.on_image)
        controller.subscribe_now(self.election.on_image)
        self.election.on_image(None, controller.image)
        controller.follow(world.timer, on_replaced=lambda _: None, on_unsupported=lambda _: None)

    def _on_deposed(self, epoch: int) -> None:
        self.deposed += 1
        self.election.on_deposed(epoch)

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    def hold_image(self) -> None:
        """Make no more images here: the watch is slow."""
        self.gate.clear()

    def release_image(self) -> None:
        """Catch up."""
        self.gate.set()

    async def close(self) -> None:
        self.gate.set()
        self.election.stop()
        await self.controller.aclose()


class ControlWorld:
    """See the module; `settle` lets all come to rest."""

    def __init__(self) -> None:
        self.timer = ManualTimer()
        self.store = WatchedStore(self.timer)
        self.lives = 0
        self.members: dict[int, Member] = {}
        self.nodes: dict[int, ControlNode] = {}

    @classmethod
    async def open(cls, brokers: int, **settings: object) -> "ControlWorld":
        world = cls()
        for node_id in range(1, brokers + 1):
            config = BrokerConfig().replace(node_id=node_id, **settings)
            store = NodeStore(world.store)
            controller = await Controller.open(
                store, config, randomness=SeededRandomness(node_id), is_alone=False
            )
            member = world.members[node_id] = Member(world, node_id)
            world.nodes[node_id] = ControlNode(world, member, controller, store.gate)
        world.store.is_open = True
        return world

    async def start(self, ended: LastRun = LastRun.CLEAN) -> None:
        """Register all brokers and wait until they are let in."""
        for member in self.members.values():
            await member.register(ended)
        await self.settle()

    async def settle(self, ms: float = 500.0) -> None:
        """Let time pass, with everything that follows from it."""
        await self.spin()
        passed = 0.0
        while passed < ms:
            self.timer.advance(10.0)
            passed += 10.0
            await self.spin(12)

    async def spin(self, most: int = 60) -> None:
        """Let what is ready run; no time passes."""
        await turns(most)

    @property
    def active(self) -> ControlNode:
        """The controller; there has to be exactly one."""
        (found,) = [node for node in self.nodes.values() if node.active.is_active]
        return found

    @property
    def image(self) -> ClusterImage:
        return self.active.image

    async def alter_isr(
        self, name: str, index: int, isr: Sequence[int], **changed: int
    ) -> AlterPartitionResponsePartitionData:
        """What the partition's leader gets for a new ISR; `changed` overrides what it says.

        `asked` is the broker that it asks, instead of the controller.
        """
        node = self.nodes[changed["asked"]] if "asked" in changed else self.active
        image = node.image
        topic = image.topics[name]
        partition = topic.partitions[index]
        sender = changed.get("broker_id", partition.leader)
        request = AlterPartitionRequest(
            broker_id=sender,
            broker_epoch=changed.get("broker_epoch", self.members[sender].broker_epoch),
            topics=[
                AlterPartitionRequestTopicData(
                    topic_id=topic.topic_id,
                    partitions=[
                        AlterPartitionRequestPartitionData(
                            partition_index=index,
                            leader_epoch=changed.get("leader_epoch", partition.leader_epoch),
                            partition_epoch=changed.get(
                                "partition_epoch", partition.partition_epoch
                            ),
                            leader_recovery_state=changed.get("recovery", 0),
                            new_isr_with_epochs=[
                                BrokerState(
                                    broker_id=one, broker_epoch=self.members[one].broker_epoch
                                )
                                for one in isr
                            ],
                        )
                    ],
                )
            ],
        )
        response = await node.active.alter_partition(request, 3)
        return response.topics[0].partitions[0]

    async def close(self) -> None:
        self.store.is_open = False
        for node in self.nodes.values():
            await node.close()
        await self.store.aclose()
