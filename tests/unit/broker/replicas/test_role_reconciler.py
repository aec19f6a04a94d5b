"""Roles follow the newest image: they end at once, and begin in slices of the loop."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.images.partition_image import PartitionImage
from broker.replicas.partition_queue import SLICE_MS
from broker.replicas.role_reconciler import NoFetchers, RoleReconciler
from protocol.error_codes import ErrorCode
from storage.types.topic_partition import TopicPartition
from tests.fakes.clock import ManualClock
from tests.unit.broker.world import topic_id

ME, OTHER, THIRD = 1, 2, 3
ALL = (ME, OTHER, THIRD)


class FakePartition:
    """Writes down the calls of its roles; taking one may take time, or fail."""

    def __init__(self, world: "RoleWorld", topic: str, index: int, topic_id: UUID) -> None:
        self.world = world
        self.topic_partition = TopicPartition(topic, index)
        self.topic_id = topic_id
        self.log = SimpleNamespace(leader_epochs=SimpleNamespace(latest_epoch=None))
        self.broken = False
        self.is_truncating = False
        self.after_truncation: list[Callable[[], None]] = []
        self.proposal: object = None
        self.proposed: object = None

    def when_truncated(self, callback: Callable[[], None]) -> None:
        self.after_truncation.append(callback)

    def _call(self, *call: object) -> None:
        self.world.clock.advance(self.world.cost_ms)
        if self.broken:
            raise RuntimeError("broken")
        self.world.calls.append((str(self.topic_partition), *call))

    def become_leader(self, state: PartitionImage, *, now_ms: float, proposed: object) -> None:
        self.proposed = proposed
        self._call("lead", state.leader_epoch)

    def become_follower(self, leader: int, leader_epoch: int) -> None:
        self._call("follow", leader, leader_epoch)

    def update_isr(self, state: PartitionImage) -> None:
        self._call("isr", state.isr)

    def resign(self, code: ErrorCode) -> None:
        self._call("resign", code.name)


class RoleWorld:
    """A reconciler over fake partitions; images are made by hand."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.cost_ms = 0.0
        self.calls: list[tuple[object, ...]] = []
        self.turns: list[Callable[[], None]] = []
        self.let_in = True
        self.broker_epoch = 7
        self.image = ClusterImage.empty()
        self.open: dict[TopicPartition, FakePartition] = {}
        self.led: list[FakePartition] = []
        world: Any = self
        self.roles = RoleReconciler(
            ME,
            image=lambda: self.image,
            membership=world,
            replicas=world,
            listener=world,
            fetchers=world,
            call_soon=self.turns.append,
            clock=self.clock,
        )

    # membership, replica manager, listener and fetchers

    def is_let_in(self, _image: ClusterImage) -> bool:
        return self.let_in

    def replica_of(self, topic: str, index: int) -> FakePartition | None:
        return self.open.get(TopicPartition(topic, index))

    def partitions(self) -> list[FakePartition]:
        return list(self.open.values())

    def lead(self, partition: FakePartition) -> None:
        if partition not in self.led:
            self.led.append(partition)

    def stop_leading(self, partition: FakePartition) -> None:
        if partition in self.led:
            self.led.remove(partition)

    def on_elected(self, partition: FakePartition, leader_epoch: int) -> None:
        self.calls.append((str(partition.topic_partition), "elected", leader_epoch))

    def on_followed(self, partition: FakePartition, leader_epoch: int) -> None:
        self.calls.append((str(partition.topic_partition), "followed", leader_epoch))

    def on_resigned(self, partition: FakePartition) -> None:
        self.calls.append((str(partition.topic_partition), "resigned"))

    def on_refused(self, partition: FakePartition, reason: str) -> None:
        self.calls.append((str(partition.topic_partition), "refused", reason))

    def remove_partition(self, partition: FakePartition, code: ErrorCode) -> None:
        self.stop_leading(partition)
        del self.open[partition.topic_partition]
        partition.resign(code)

    def remove_topic(self, topic: str) -> list[FakePartition]:
        gone = [one for one in self.open.values() if one.topic_partition.topic == topic]
        for one in gone:
            self.remove_partition(one, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return gone

    def follow(self, partition: FakePartition, leader_id: int) -> None:
        self.calls.append((str(partition.topic_partition), "fetch", leader_id))

    def unfollow(self, partition: FakePartition) -> None:
        self.calls.append((str(partition.topic_partition), "no fetch"))

    # what tests do

    def add(self, topic: str, *states: PartitionImage, open_them: bool = True) -> None:
        """An image with a topic in it; its partitions are open."""
        self.set(topic, *states)
        if open_them:
            for state in states:
                self.open_log(topic, state.index)

    def open_log(self, topic: str, index: int) -> FakePartition:
        partition = FakePartition(self, topic, index, topic_id(topic))
        self.open[partition.topic_partition] = partition
        opened: Any = partition
        self.roles.opened(opened)
        return partition

    def set(self, topic: str, *states: PartitionImage) -> None:
        """The next image, in which a topic has these partitions."""
        old = self.image
        image = TopicImage(topic, topic_id(topic), states, {}, internal=False)
        self.image = replace(old, topics={**old.topics, topic: image}, revision=old.revision + 1)
        self.roles.apply(old, self.image)

    def took(self) -> list[tuple[object, ...]]:
        calls, self.calls = self.calls, []
        return calls


def state(
    leader: int,
    leader_epoch: int = 0,
    *,
    index: int = 0,
    partition_epoch: int = 0,
    replicas: tuple[int, ...] = ALL,
    isr: tuple[int, ...] = ALL,
) -> PartitionImage:
    return PartitionImage(index, leader, leader_epoch, partition_epoch, replicas, isr)


@pytest.fixture
def world() -> RoleWorld:
    return RoleWorld()


def test_an_opened_log_gets_its_role_at_once(world: RoleWorld) -> None:
    """The leader's fetcher is stopped first; who follows roles hears of it last."""
    world.add("t", state(ME, 4), state(OTHER, 5, index=1))
    assert world.took() == [
        ("t-0", "no fetch"),
        ("t-0", "lead", 4),
        ("t-0", "elected", 4),
        ("t-1", "follow", OTHER, 5),
        ("t-1", "followed", 5),
        ("t-1", "fetch", OTHER),
    ]
    assert world.led == [world.open[TopicPartition("t", 0)]]


def test_a_leader_that_is_deposed_stops_in_the_turn_of_the_image(world: RoleWorld) -> None:
    """Also with a thousand that are to be led, and a slice that is used up."""
    world.add("a", *(state(OTHER, index=index) for index in range(5)))
    world.add("b", state(ME), state(ME, index=1))
    world.took()
    world.cost_ms = SLICE_MS
    old = world.image
    topics = {
        name: replace(
            topic,
            partitions=tuple(
                replace(one, leader=OTHER if name == "b" else ME, leader_epoch=1)
                for one in topic.partitions
            ),
        )
        for name, topic in old.topics.items()
    }
    world.image = replace(old, topics=topics)
    world.roles.apply(old, world.image)
    calls = world.took()
    assert ("b-0", "followed", 1) in calls
    assert ("b-1", "followed", 1) in calls
    assert [call for call in calls if "lead" in call] == [("a-0", "lead", 1)]
    assert [one.topic_partition.topic for one in world.led] == ["a"]
    turns = 0
    while world.turns:
        world.turns.pop()()
        turns += 1
    assert [call[0] for call in world.took() if "lead" in call] == ["a-1", "a-2", "a-3", "a-4"]
    assert turns == 4
    assert world.roles.due == 0


def test_a_leader_that_stays_in_a_later_epoch_begins_anew(world: RoleWorld) -> None:
    """Coordinators load again; what followers have fetched in the old epoch counts no more."""
    world.add("t", state(ME, 4))
    world.took()
    world.set("t", state(ME, 5))
    assert world.took() == [("t-0", "no fetch"), ("t-0", "lead", 5), ("t-0", "elected", 5)]


def test_a_later_isr_of_the_same_epoch_is_an_update(world: RoleWorld) -> None:
    """Only for the leader, and only once."""
    world.add("t", state(ME, 4), state(OTHER, 4, index=1))
    world.took()
    shrunk = state(ME, 4, partition_epoch=1, isr=(ME, OTHER))
    world.set("t", shrunk, state(OTHER, 4, index=1, partition_epoch=1, isr=(OTHER,)))
    assert world.took() == [("t-0", "isr", (ME, OTHER))]
    world.set("t", replace(shrunk), state(OTHER, 4, index=1, partition_epoch=1, isr=(OTHER,)))
    assert world.took() == []


def test_a_follower_goes_to_the_next_leader(world: RoleWorld) -> None:
    """Without one it fetches from nobody."""
    world.add("t", state(OTHER, 1))
    world.took()
    world.set("t", state(THIRD, 2))
    assert world.took() == [
        ("t-0", "follow", THIRD, 2),
        ("t-0", "followed", 2),
        ("t-0", "fetch", THIRD),
    ]
    world.set("t", state(-1, 3))
    assert world.took() == [
        ("t-0", "follow", -1, 3),
        ("t-0", "followed", 3),
        ("t-0", "no fetch"),
    ]


def test_nobody_has_a_role_before_this_life_is_let_in(world: RoleWorld) -> None:
    """A broker that was started again must not go on in an epoch of its earlier life."""
    world.let_in = False
    world.add("t", state(ME, 4), state(OTHER, 4, index=1))
    assert world.took() == []
    world.let_in = True
    world.set("other", state(OTHER))
    assert [call[:2] for call in world.took()] == [
        ("t-0", "no fetch"),
        ("t-0", "lead"),
        ("t-0", "elected"),
        ("t-1", "follow"),
        ("t-1", "followed"),
        ("t-1", "fetch"),
    ]


def test_a_fenced_broker_ends_all_its_roles(world: RoleWorld) -> None:
    world.add("t", state(ME, 4), state(OTHER, 4, index=1))
    world.took()
    world.let_in = False
    world.set("other", state(OTHER))
    world.let_in = True
    assert [call for call in world.took() if "no fetch" not in call] == [
        ("t-0", "resign", "NOT_LEADER_OR_FOLLOWER"),
        ("t-0", "resigned"),
        ("t-1", "resign", "NOT_LEADER_OR_FOLLOWER"),
        ("t-1", "resigned"),
    ]
    assert world.led == []


def test_a_broker_that_is_fenced_right_after_a_review_ends_its_roles(world: RoleWorld) -> None:
    """It was let in by an image that came before it knew its own epoch."""
    world.let_in = False
    world.add("t", state(ME, 4))
    world.let_in = True
    world.roles.review()
    assert world.led
    world.let_in = False
    world.set("other", state(OTHER))
    assert world.led == []


def test_a_replica_that_is_assigned_no_longer_has_no_role(world: RoleWorld) -> None:
    world.add("t", state(ME, 4))
    world.took()
    world.set("t", state(OTHER, 5, replicas=(OTHER, THIRD), isr=(OTHER, THIRD)))
    assert world.took() == [
        ("t-0", "no fetch"),
        ("t-0", "resign", "NOT_LEADER_OR_FOLLOWER"),
        ("t-0", "resigned"),
    ]


def test_the_log_of_a_deleted_topic_gets_no_role_in_the_next_of_its_name(
    world: RoleWorld,
) -> None:
    world.add("t", state(ME, 4))
    world.took()
    topic = replace(world.image.topics["t"], topic_id=UUID(int=99))
    old, world.image = world.image, replace(world.image, topics={"t": topic})
    world.roles.apply(old, world.image)
    assert ("t-0", "resigned") in world.took()
    assert world.led == []


def test_a_log_that_is_newer_than_the_metadata_is_not_led(world: RoleWorld) -> None:
    """A restored store gives epochs twice: two records would have one name."""
    world.add("t", state(OTHER, 1))
    world.open[TopicPartition("t", 0)].log.leader_epochs.latest_epoch = 9
    world.took()
    world.set("t", state(ME, 2))
    calls = world.took()
    assert [call[1] for call in calls] == ["no fetch", "resign", "resigned", "refused"]
    assert "leader epoch 9" in str(calls[-1][2])
    assert world.led == []
    world.set("t", state(ME, 9))
    assert ("t-0", "elected", 9) in world.took()


def test_a_single_node_leads_what_it_has(world: RoleWorld) -> None:
    """Its store may be older than its logs; nobody else has what it leads."""
    world.broker_epoch = 0
    world.add("t", state(ME, 1, replicas=(ME,), isr=(ME,)), open_them=False)
    world.open_log("t", 0)
    world.open[TopicPartition("t", 0)].log.leader_epochs.latest_epoch = 9
    world.set("t", state(ME, 2, replicas=(ME,), isr=(ME,)))
    assert ("t-0", "elected", 2) in world.took()


def test_what_one_partition_cannot_do_keeps_the_others_from_nothing(
    world: RoleWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.add("t", state(OTHER), state(OTHER, index=1))
    world.open[TopicPartition("t", 0)].broken = True
    world.took()
    world.set("t", state(ME, 1), state(ME, 1, index=1))
    assert ("t-1", "elected", 1) in world.took()
    assert [one.topic_partition.partition for one in world.led] == [1]
    assert "role not taken" in caplog.text


def test_a_closed_partition_takes_no_role_any_more(world: RoleWorld) -> None:
    """Its directory has failed; what it waited for is not done."""
    world.add("t", state(ME), state(OTHER, index=1))
    world.took()
    world.cost_ms = SLICE_MS
    world.set("t", state(ME, 1), state(ME, 1, index=1))
    assert world.roles.due == 1
    world.took()
    gone = [*world.open, TopicPartition("absent", 0)]
    world.roles.close(gone, ErrorCode.KAFKA_STORAGE_ERROR)
    assert world.took() == [
        ("t-0", "resign", "KAFKA_STORAGE_ERROR"),
        ("t-0", "no fetch"),
        ("t-0", "resigned"),
        ("t-1", "resign", "KAFKA_STORAGE_ERROR"),
        ("t-1", "no fetch"),
        ("t-1", "resigned"),
    ]
    assert (world.roles.due, world.led) == (0, [])


def test_who_follows_roles_hears_of_a_deleted_topic_otherwise(world: RoleWorld) -> None:
    """Remote storage keeps what it removes only from a partition that it has not let go."""
    world.add("t", state(ME), state(OTHER, index=1))
    world.add("other", state(ME))
    world.took()
    closed = world.roles.close_topic("t")
    assert [str(one.topic_partition) for one in closed] == ["t-0", "t-1"]
    assert "resigned" not in [call[1] for call in world.took()]
    world.set("t", state(ME, 1), state(ME, 1, index=1))
    assert world.took() == []
    assert [one.topic_partition.topic for one in world.led] == ["other"]


def test_a_single_node_says_that_it_follows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    partition: Any = SimpleNamespace(topic_partition=TopicPartition("t", 0))
    NoFetchers().unfollow(partition)
    NoFetchers().follow(partition, OTHER)
    assert "t-0" in caplog.text


def test_log_that_is_truncated_takes_its_role_afterwards(world: RoleWorld) -> None:
    """What the image wants by then; nothing else touches the log before."""
    world.add("t", state(OTHER, 1))
    partition = world.open[TopicPartition("t", 0)]
    partition.is_truncating = True
    world.took()
    world.set("t", state(ME, 2))
    world.set("t", state(ME, 3))
    assert world.took() == []
    partition.is_truncating = False
    for callback in partition.after_truncation:
        callback()
    assert [call for call in world.took() if call[1] == "lead"] == [("t-0", "lead", 3)]


@pytest.mark.parametrize("how", ["closed", "let go", "followed", "deleted"])
def test_what_a_leader_had_under_way_is_known_to_the_next_of_its_log(
    world: RoleWorld, how: str
) -> None:
    """The controller may have agreed. Not once another has led, or the topic is gone."""
    world.add("t", state(ME))
    newest = world.open[TopicPartition("t", 0)]
    newest.proposal = asked = object()
    if how == "let go":
        world.let_in = False
        world.roles.review()
        world.let_in = True
        world.roles.review()
    else:
        world.roles.close([newest.topic_partition], ErrorCode.KAFKA_STORAGE_ERROR)
        if how == "deleted":
            world.roles.close_topic("t")
        elif how == "followed":
            world.set("t", state(OTHER, 1))
            world.open_log("t", 0)
            world.set("t", state(ME, 2))
        newest = world.open_log("t", 0)
    assert newest.proposed is (asked if how in ("closed", "let go") else None)
