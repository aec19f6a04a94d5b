"""Several controllers, brokers that come and go, changes of ISR and replicas (Hypothesis).

I7   records are sane: ISR and ELR disjoint, of the replicas; the leader is in the ISR
I9   every change of the cluster's state carries the controller epoch in force (the store checks)
     epochs never go down, and no broker leads twice in one leader epoch over two of its lives
I8   images of one revision are equal on all brokers
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.controller.active.reassignments import ReassignmentRequest
from broker.controller.images.broker_records import LastRun
from broker.controller.images.metadata_records import CONTROLLER_KEY
from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.controller.store.metadata_store import Delete
from broker.controller.topics.topics import NewTopic
from broker.runtime.errors import ApiError
from tests.effort import examples
from tests.fakes.broker.control_world import ControlWorld

BROKERS = st.integers(1, 3)
PARTITIONS = [("t", 0), ("t", 1), ("alone", 0)]

_T = TypeVar("_T")


class ControlMachine(RuleBasedStateMachine):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.world = self.run(ControlWorld.open(3, min_insync_replicas=2))
        self.seen: dict[tuple[str, int], PartitionImage] = {}
        self.led: dict[tuple[str, int, int], tuple[int, int]] = {}
        self.violations: list[str] = []
        self.controller_epoch = 0
        self.run(self.begin())

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return self.loop.run_until_complete(coroutine)

    async def begin(self) -> None:
        await self.world.start()
        topics = [
            NewTopic("t", assignments=[(0, (1, 2, 3)), (1, (2, 3, 1))]),
            NewTopic("alone", assignments=[(0, (3,))]),
        ]
        await self.world.active.controller.create_topics(topics)
        await self.world.settle(50)
        for node in self.world.nodes.values():
            node.controller.subscribe_now(self.follow)

    def teardown(self) -> None:
        self.run(self.world.close())
        self.loop.close()

    def follow(self, _old: object, image: Any) -> None:
        """Called with every image of every broker."""
        for name, index in PARTITIONS:
            partition = image.partition(name, index)
            if partition.leader == NO_LEADER:
                continue
            broker = image.brokers[partition.leader]
            if broker.is_fenced:
                continue
            # It takes the role: in this leader epoch, in this life.
            key = (name, index, partition.leader_epoch)
            led = self.led.setdefault(key, (partition.leader, broker.epoch))
            if led != (partition.leader, broker.epoch):
                # Raised by the invariant: here it would go to the log.
                self.violations.append(f"{key}: led by {led}, then by {broker}")

    # -- what happens ----------------------------------------------------------------------------

    @rule(node=BROKERS, ended=st.sampled_from(LastRun))
    def restart(self, node: int, ended: LastRun) -> None:
        self.run(self.world.members[node].register(ended))

    @rule(node=BROKERS)
    def lose_lease(self, node: int) -> None:
        self.run(self.world.members[node].end_lease())

    @rule(node=BROKERS)
    def put_lease_again(self, node: int) -> None:
        self.run(self.world.members[node].return_())

    @rule(node=BROKERS)
    def drain(self, node: int) -> None:
        self.run(self.world.members[node].drain())

    @rule()
    def delete_controller(self) -> None:
        self.run(self.world.store.txn(then=[Delete(CONTROLLER_KEY)]))

    @rule(node=BROKERS)
    def hold_image(self, node: int) -> None:
        self.world.nodes[node].hold_image()

    @rule(node=BROKERS)
    def release_image(self, node: int) -> None:
        self.world.nodes[node].release_image()

    @rule(
        which=st.sampled_from(PARTITIONS),
        isr=st.permutations([1, 2, 3]),
        size=st.integers(1, 3),
        asked=BROKERS,
    )
    def alter(self, which: tuple[str, int], isr: list[int], size: int, asked: int) -> None:
        """Whoever takes itself for the controller is asked."""
        node = self.world.nodes[asked]
        if not node.active.is_active:
            return
        partition = node.image.partition(*which)
        if partition is None or partition.leader == NO_LEADER:
            return
        members = [n for n in isr if n in partition.replicas][:size]

        async def ask() -> None:
            try:
                await self.world.alter_isr(*which, members, asked=asked)
            except ApiError:
                return

        task = self.loop.create_task(ask())
        self.run(self.world.settle(50))
        task.cancel()
        self.run(self.world.spin(3))

    @rule(
        which=st.sampled_from(PARTITIONS),
        order=st.permutations([1, 2, 3]),
        size=st.integers(0, 3),
        asked=BROKERS,
    )
    def reassign(self, which: tuple[str, int], order: list[int], size: int, asked: int) -> None:
        """To some of the brokers; to none: back to what was before."""
        request = ReassignmentRequest(*which, tuple(order[:size]) or None)
        reassigning = self.world.nodes[asked].active.alter_reassignments([request])
        task = self.loop.create_task(reassigning)
        self.run(self.world.settle(50))
        task.cancel()
        self.run(self.world.spin(3))

    @rule(ms=st.sampled_from([10, 60, 1500]))
    def wait(self, ms: int) -> None:
        self.run(self.world.settle(ms))

    # -- what holds ------------------------------------------------------------------------------

    @invariant()
    def leader_epochs_have_one_leader_each(self) -> None:
        assert self.violations == []

    @invariant()
    def records_are_sane(self) -> None:
        newest = max((n.image for n in self.world.nodes.values()), key=lambda i: i.revision)
        assert newest.controller_epoch == 0 or newest.controller_epoch >= self.controller_epoch
        self.controller_epoch = max(self.controller_epoch, newest.controller_epoch)
        for which in PARTITIONS:
            partition = newest.partition(*which)
            assert partition is not None
            isr, elr = set(partition.isr), set(partition.elr)
            assert len(isr) == len(partition.isr)
            assert not isr & elr
            assert isr | elr | set(partition.last_known_elr) <= set(partition.replicas)
            assert partition.leader == NO_LEADER or partition.leader in isr
            assert not elr or len(isr) < min(2, len(partition.original))
            assert set(partition.adding) | set(partition.removing) <= set(partition.replicas)
            assert partition.original
            assert partition.target
            old = self.seen.get(which)
            if old is not None:
                assert partition.partition_epoch >= old.partition_epoch
                assert partition.leader_epoch >= old.leader_epoch
                if partition.leader != old.leader or not (
                    set(old.replicas) <= set(partition.replicas)
                ):
                    # A replica that is gone must not come back in the epoch in which it left.
                    assert partition.leader_epoch > old.leader_epoch
                if partition.partition_epoch == old.partition_epoch:
                    assert partition == old
            self.seen[which] = partition

    @invariant()
    def images_of_one_revision_are_equal(self) -> None:
        by_revision: dict[int, object] = {}
        for node in self.world.nodes.values():
            image = node.image
            shown = (image.topics, image.brokers, image.controller_epoch)
            assert by_revision.setdefault(image.revision, shown) == shown

    def heal(self) -> None:
        """I13: once all are back, every partition is led, and the brokers are let in."""
        for node in self.world.nodes.values():
            node.release_image()
        for member in self.world.members.values():
            self.run(member.register(LastRun.SAME_BOOT))
        self.run(self.world.settle(4000))
        image = self.world.image
        assert not any(broker.is_fenced for broker in image.brokers.values())
        self.records_are_sane()
        self.leader_epochs_have_one_leader_each()


class HealingMachine(ControlMachine):
    """The same, and in the end all come back."""

    def teardown(self) -> None:
        self.heal()
        super().teardown()


TestControl = HealingMachine.TestCase
TestControl.settings = examples(40, steps=40)
