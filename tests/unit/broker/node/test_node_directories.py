"""Roll call of log directories; the rest is in `tests/system/disks/test_missing_directory.py`."""

from dataclasses import replace
from uuid import UUID

import pytest

from broker.controller.controller import Controller
from broker.controller.images.broker_records import (
    BrokerRegistration,
    broker_key,
    encode_fence,
    encode_live,
    encode_registration,
    fence_key,
    live_key,
)
from broker.controller.images.metadata_records import chunks, directory_key
from broker.controller.store.metadata_store import Delete, Put
from broker.controller.topics.topics import NewTopic
from broker.node.node_directories import NodeDirectories
from config.broker import BrokerConfig
from storage.environment.alerts import AlertKind, Alerts
from storage.environment.randomness import SeededRandomness
from storage.errors import InconsistentDirectoryError
from storage.manager.log_manager import LogManager
from storage.types.uuid_text import NIL
from tests.fakes.broker.controller import CLUSTER_ID, open_controller
from tests.fakes.broker.metadata_store import MemoryStore
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.fakes.filesystem import FakeFilesystem

STORE = UUID(int=4000)
RANDOMNESS = SeededRandomness(1)
"""One for all nodes: an id never comes twice."""


class Node:
    """Directories and a controller; no logs are opened."""

    def __init__(
        self,
        filesystem: FakeFilesystem,
        controller: Controller,
        *paths: str,
        is_alone: bool = True,
    ) -> None:
        self.alerts = Alerts()
        self.controller = controller
        self.logs = LogManager(
            FakeEnvironment(filesystem=filesystem, clock=ManualClock(), randomness=RANDOMNESS),
            paths,
        )
        self.logs.startup.open_directories()
        self.directories = NodeDirectories(
            controller, self.logs, self.alerts, self._run, is_alone=is_alone
        )
        controller.place_by(self.logs.placement)

    @staticmethod
    async def _run(function: object, *args: object) -> object:
        assert callable(function)
        return function(*args)

    async def claim(self) -> "Node":
        await self.directories.claim(STORE)
        return self

    def kinds(self) -> dict[AlertKind, int]:
        return {kind: count for kind, count in self.alerts.counts().items() if count}


async def start(store: MemoryStore, filesystem: FakeFilesystem, *paths: str) -> Node:
    filesystem.locks.clear()
    return await Node(filesystem, await open_controller(store), *paths).claim()


async def test_what_is_claimed_is_known_by_id_and_place() -> None:
    store, filesystem = MemoryStore(), FakeFilesystem()
    node = await start(store, filesystem, "/a", "/b")
    ids = {d.path: d.id for d in node.logs.directories}
    assert node.controller.image.directories == {ids["/a"]: (1, "/a"), ids["/b"]: (1, "/b")}
    filesystem.rename("/b", "/c")
    node = await start(store, filesystem, "/c", "/a")
    assert node.controller.image.directories == {ids["/a"]: (1, "/a"), ids["/b"]: (1, "/c")}
    assert node.kinds() == {}


async def member(store: MemoryStore, filesystem: FakeFilesystem, *paths: str) -> Node:
    filesystem.locks.clear()
    node = Node(filesystem, await open_controller(store), *paths, is_alone=False)
    return await node.claim()


async def back(store: MemoryStore, filesystem: FakeFilesystem, path: str) -> Node:
    """A member that is started again without what was at `path`, and sees the other brokers."""
    filesystem.rename(path, f"/away-{len(filesystem.list_directory('/'))}")
    filesystem.locks.clear()
    controller = await Controller.open(
        store,
        BrokerConfig(),
        randomness=SeededRandomness(0),
        cluster_id=CLUSTER_ID,
        is_alone=False,
    )
    return await Node(filesystem, controller, path, is_alone=False).claim()


async def lead_elsewhere(store: MemoryStore, node: Node, *indexes: int) -> None:
    """Another broker leads these partitions of `t`, and has all that is committed."""
    topic = node.controller.image.topics["t"]
    partitions = [
        replace(one, replicas=(1, 2), isr=(2,), leader=2, directories=(*one.directories, NIL))
        if one.index in indexes
        else one
        for one in topic.partitions
    ]
    puts = [Put(key, value) for key, value in chunks(topic.topic_id, partitions)]
    await store.txn(then=puts)
    await let_in(store)


async def let_in(store: MemoryStore, *directories: UUID) -> None:
    """Broker 2 has registered with these log directories, lives, and takes part."""
    said = BrokerRegistration(UUID(int=2), {}, directories=directories)
    epoch = await store.txn(
        then=[
            Put(broker_key(2), encode_registration(said)),
            Put(live_key(2), encode_live(said.incarnation)),
        ]
    )
    await store.txn(then=[Put(fence_key(2), encode_fence(epoch.revision))])


def begins(node: Node) -> list[bool]:
    partitions = node.controller.image.topics["t"].partitions
    return [node.directories.begins_anew(partition) for partition in partitions]


async def test_topics_of_others_are_no_sign_of_a_loss() -> None:
    """A new member claims its directories, and writes down that it has them."""
    store, filesystem = MemoryStore(), FakeFilesystem()
    controller = await open_controller(store)
    await controller.create_topics([NewTopic("t", 3, 1)])
    node = await member(store, filesystem, "/a", "/b")
    assert node.directories.missing == {}
    assert [d.is_online and d.meta is not None for d in node.logs.directories] == [True, True]
    assert node.kinds() == {}
    assert set(node.controller.image.directories) == {d.id for d in node.logs.directories}


async def test_a_member_waits_for_a_directory_that_is_missing_beside_others() -> None:
    """Even where other brokers lead: it may be mounted in a minute."""
    store, filesystem = MemoryStore(), FakeFilesystem()
    node = await member(store, filesystem, "/a", "/b")
    lost = node.logs.directories[1].id
    await node.controller.create_topics([NewTopic("t", 2, 1)])
    await lead_elsewhere(store, node, 0, 1)
    filesystem.rename("/b", "/away")
    node = await member(store, filesystem, "/a", "/b")
    assert node.directories.missing == {lost: "/b"}
    assert node.kinds() == {AlertKind.DIRECTORY_MISSING: 1}
    assert [d.path for d in node.logs.directories if d.is_online] == ["/a"]
    assert begins(node) == [False, False]


async def test_what_a_member_was_told_to_give_up_begins_anew() -> None:
    store, filesystem = MemoryStore(), FakeFilesystem()
    node = await member(store, filesystem, "/a", "/b")
    await node.controller.create_topics([NewTopic("t", 2, 1)])
    lost = node.logs.directories[1].id
    assert lost is not None
    was_there = [p.directory_on(1) == lost for p in node.controller.image.topics["t"].partitions]
    await store.txn(then=[Delete(directory_key(1, lost))])
    filesystem.rename("/b", "/away")
    node = await member(store, filesystem, "/a", "/b")
    assert node.kinds() == {}
    assert begins(node) == was_there


async def test_a_member_with_new_directories_alone_begins_what_others_lead(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What may be the last copy waits for its disk; without one a line says what begins empty."""
    store, filesystem = MemoryStore(), FakeFilesystem()
    node = await member(store, filesystem, "/a")
    await node.controller.create_topics([NewTopic("t", 2, 1)])
    await lead_elsewhere(store, node, 0)
    node = await back(store, filesystem, "/a")
    assert [d.is_online for d in node.logs.directories] == [True]
    assert node.kinds() == {AlertKind.DIRECTORY_MISSING: 1}
    (alert,) = node.alerts.all()
    assert "of its 2 partitions those that another broker leads begin empty here" in alert.text
    assert begins(node) == [True, False]
    assert "are fetched from their leaders" not in caplog.text
    await lead_elsewhere(store, await member(store, filesystem, "/a"), 1)
    node = await back(store, filesystem, "/a")
    (line,) = [one for one in caplog.messages if "are fetched from their leaders" in one]
    assert "the partitions of /a begin empty" in line
    assert "partitions=2" in line
    assert node.kinds() == {}
    assert begins(node) == [True, True]


async def test_who_leads_and_does_not_live_may_come_back_empty_too() -> None:
    """The store names who led when all were stopped, and then all their disks were not mounted."""
    store, filesystem = MemoryStore(), FakeFilesystem()
    node = await member(store, filesystem, "/a")
    await node.controller.create_topics([NewTopic("t", 1, 1)])
    await lead_elsewhere(store, node, 0)
    await store.txn(then=[Delete(live_key(2))])
    node = await back(store, filesystem, "/a")
    assert node.kinds() == {AlertKind.DIRECTORY_MISSING: 1}
    assert begins(node) == [False]
    await let_in(store)
    assert begins(await back(store, filesystem, "/a")) == [True]


async def test_who_leads_and_has_lost_its_directory_has_not_what_was_there() -> None:
    store, filesystem = MemoryStore(), FakeFilesystem()
    node = await member(store, filesystem, "/a")
    await node.controller.create_topics([NewTopic("t", 1, 1)])
    await lead_elsewhere(store, node, 0)
    topic = node.controller.image.topics["t"]
    (one,) = topic.partitions
    led = replace(
        one, replicas=(1, 2), isr=(2,), leader=2, directories=(*one.directories, UUID(int=20))
    )
    await store.txn(then=[Put(key, value) for key, value in chunks(topic.topic_id, [led])])
    await let_in(store, UUID(int=21))
    assert begins(await back(store, filesystem, "/a")) == [False]
    await let_in(store, UUID(int=20))
    assert begins(await back(store, filesystem, "/a")) == [True]


async def test_new_partitions_have_a_place_in_the_same_commit() -> None:
    """Spread over all directories, also within one request."""
    node = await start(MemoryStore(), FakeFilesystem(), "/a", "/b", "/c")
    await node.controller.create_topics([NewTopic("t", 3, 1), NewTopic("u", 3, 1)])
    ids = {d.id for d in node.logs.directories}
    for topic in node.controller.image.topics.values():
        assert {p.directory_on(1) for p in topic.partitions} == ids


async def test_only_a_directory_with_partitions_is_missed() -> None:
    store, filesystem = MemoryStore(), FakeFilesystem()
    node = await start(store, filesystem, "/a", "/b")
    lost = node.logs.directories[1].id
    filesystem.rename("/b", "/away")
    node = await start(store, filesystem, "/a", "/b")
    assert node.kinds() == {}
    assert lost not in node.controller.image.directories
    await node.controller.create_topics([NewTopic("t", 2, 1)])
    filesystem.rename("/b", "/away2")
    node = await start(store, filesystem, "/a", "/b", "/new")
    assert node.kinds() == {AlertKind.DIRECTORY_MISSING: 1, AlertKind.DIRECTORY_UNUSED: 1}
    assert [d.path for d in node.logs.directories if d.is_online] == ["/a"]
    node = await start(store, filesystem, "/a")
    assert [d.path for d in node.logs.offline_directories] == ["/b"]


async def test_the_directory_of_another_node_is_refused_before_anything_is_missed() -> None:
    """With disks in the wrong machine nothing is lost: none is to be given up."""
    store, filesystem = MemoryStore(), FakeFilesystem()
    node = await start(store, filesystem, "/a", "/b")
    await node.controller.create_topics([NewTopic("t", 2, 1)])
    properties = filesystem.peek("/b/meta.properties").decode().splitlines()
    assert "node.id=1" in properties
    filesystem.rename("/b", "/away")
    filesystem.mkdir("/b")
    others = "\n".join({"node.id=1": "node.id=2"}.get(line, line) for line in properties)
    filesystem.poke("/b/meta.properties", others.encode())
    filesystem.locks.clear()
    node = Node(filesystem, await open_controller(store), "/a", "/b")
    with pytest.raises(InconsistentDirectoryError, match="/b belongs to node 2, this is 1"):
        await node.claim()
    assert node.kinds() == {}


async def test_one_id_twice_is_a_copy() -> None:
    filesystem = FakeFilesystem()
    await start(MemoryStore(), filesystem, "/a")
    filesystem.mkdir("/b")
    filesystem.poke("/b/meta.properties", filesystem.peek("/a/meta.properties"))
    with pytest.raises(InconsistentDirectoryError, match="/a and /b are the same"):
        await start(MemoryStore(), filesystem, "/a", "/b")


async def test_a_member_with_new_directories_alone_has_lost_what_the_store_says_it_has() -> None:
    """It waits then, before anything begins empty, for the leases of brokers that are gone."""
    store, filesystem = MemoryStore(), FakeFilesystem()
    filesystem.locks.clear()
    node = Node(filesystem, await open_controller(store), "/a", is_alone=False)
    assert not node.directories.have_lost_all()
    await node.claim()
    await node.controller.create_topics([NewTopic("t", 1, 1)])
    assert not node.directories.have_lost_all()
    filesystem.rename("/a", "/away")
    filesystem.locks.clear()
    assert Node(filesystem, node.controller, "/a", is_alone=False).directories.have_lost_all()
    filesystem.locks.clear()
    assert not Node(filesystem, node.controller, "/a").directories.have_lost_all()
