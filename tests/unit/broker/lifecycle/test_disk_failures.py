"""What a broker does when a disk fails or is full."""

import errno
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from broker.lifecycle.disk_failures import DiskFailures
from storage.errors import DiskError
from storage.types.topic_partition import TopicPartition

ORDERS = TopicPartition("orders", 0)


class World:
    """Two directories, the metadata store in the first, and a loop whose calls are made by hand."""

    def __init__(self, store_path: str = "/one/metadata.db") -> None:
        self.led = {ORDERS}
        self.events: list[tuple[object, ...]] = []
        self.soon: list[Callable[[], object]] = []
        self.directories = [SimpleNamespace(path="/one"), SimpleNamespace(path="/two")]
        manager: Any = SimpleNamespace(
            directories=self.directories,
            offline_directories=[],
            logs_in=lambda directory: [f"log in {directory.path}", "another"],
            note_failures="note",
            fail_log=lambda log, error: self.events.append(("log failed", log)),
            room=SimpleNamespace(
                out_of_room_at=lambda path, error: self.events.append(("full", path, error.errno))
            ),
        )
        store: Any = SimpleNamespace()
        self.manager, self.store = manager, store
        roles: Any = SimpleNamespace(
            close=lambda gone, code: self.events.append(("closed", *gone, code.name))
        )
        coordinators: Any = SimpleNamespace(
            set_unavailable=lambda one, reason: self.events.append(("unavailable", one, reason))
        )
        disk: Any = SimpleNamespace(submit=lambda call, _done: self.events.append((call,)))
        self.failures = DiskFailures(
            manager,
            roles,
            coordinators,
            disk=disk,
            store_path=store_path,
            is_leader=lambda one: one in self.led,
            call_soon_threadsafe=lambda call, *args: self.soon.append(lambda: call(*args)),
            fail=lambda reason: self.events.append(("broker fails", reason)),
        )
        self.failures.watch(store)

    def fail(self, path: str) -> None:
        self.manager.offline_directories.append(path)
        self.manager.on_directory_failure(path, [ORDERS])
        assert self.events == []
        self.soon.pop()()


def test_a_failed_directory_resigns_its_partitions_on_the_loop() -> None:
    """The failure is seen in whichever thread met it; a kill that follows is to find its note."""
    world = World()
    world.fail("/two")
    assert world.events == [
        ("note",),
        ("closed", ORDERS, "KAFKA_STORAGE_ERROR"),
        ("unavailable", ORDERS, "its log is in /two, which is offline"),
    ]


def test_without_the_metadata_store_the_broker_fails() -> None:
    world = World()
    world.fail("/one")
    assert world.events[-1] == ("broker fails", "/one is offline and holds the metadata store")


def test_without_any_directory_the_broker_fails() -> None:
    world = World()
    world.manager.offline_directories.append("/one")
    world.fail("/two")
    assert world.events[-1] == ("broker fails", "every log directory is offline")


def test_a_failed_write_behind_a_produce_fails_its_directory() -> None:
    """One log stands for all: what the disk has of the others is not known either."""
    world = World()
    writer = SimpleNamespace(on_failed=None)
    writers: Any = SimpleNamespace(all=lambda: {"/two": writer})
    world.failures.watch_writers(writers)
    assert writer.on_failed is not None
    writer.on_failed(DiskError("write refused", "/two/orders-0", errno.EIO))
    assert world.events == [("log failed", "log in /two")]


def test_a_full_metadata_store_may_have_its_directorys_reserve() -> None:
    world = World()
    world.store.on_full("database or disk is full")
    assert world.events == [("full", "/one", errno.ENOSPC)]


def test_room_is_made_on_the_loop() -> None:
    world = World()
    world.failures.watch_room(lambda: world.events.append(("room",)))
    world.manager.on_directory_full()
    assert world.events == []
    world.soon.pop()()
    assert world.events == [("room",)]


def test_the_first_directory_of_a_member_is_like_any_other() -> None:
    """The metadata store is not in it: the broker lives on with what the others hold."""
    world = World(store_path="")
    world.fail("/one")
    assert world.events[:2] == [("note",), ("closed", ORDERS, "KAFKA_STORAGE_ERROR")]
    assert "broker fails" not in [event[0] for event in world.events]


def test_what_another_broker_leads_is_coordinated_there() -> None:
    """Only the replica is lost here, and no coordinator."""
    world = World(store_path="")
    world.led.clear()
    world.fail("/two")
    assert world.events == [("note",), ("closed", ORDERS, "KAFKA_STORAGE_ERROR")]
