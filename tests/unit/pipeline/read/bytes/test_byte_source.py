import asyncio
from collections.abc import Iterator

import pytest

from pipeline.read.bytes.byte_source import FileBytes, StoreBytes
from pipeline.read.bytes.store_thread import StoreThread
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.tiered.memory_object_store import FOREVER, Fault, MemoryObjectStore
from tiered.errors import (
    CorruptRemoteDataError,
    ObjectNotFoundError,
    StoreDeniedError,
    StoreTimeoutError,
    StoreUnavailableError,
)

DATA = bytes(range(200))


@pytest.fixture
def thread() -> Iterator[StoreThread]:
    thread = StoreThread()
    yield thread
    thread.close()


def stored() -> MemoryObjectStore:
    store = MemoryObjectStore(ManualClock())
    asyncio.run(store.put("a.log", DATA))
    return store


def on_disk() -> FakeFilesystem:
    disk = FakeFilesystem(ManualClock())
    disk.mkdir("/bucket")
    disk.replace_bytes("/bucket/a.log", DATA)
    return disk


def test_ranges_of_a_store_are_under_way_together(thread: StoreThread) -> None:
    store = stored()
    source = StoreBytes(thread, store, "a.log", len(DATA))
    first, second = bytearray(10), bytearray(20)
    store.fail("get_range", Fault.HANG)
    hung = source.begin(0, memoryview(first))
    done = source.begin(50, memoryview(second))
    done.wait()
    assert second == DATA[50:70]

    async def heal() -> None:
        store.heal()

    thread.run(heal())
    hung.wait()
    assert first == DATA[:10]


def test_a_file_is_read_when_it_is_waited_for() -> None:
    """Not before: what was in the memory may still be wanted."""
    source = FileBytes(on_disk(), "/bucket/a.log", "a.log", len(DATA))
    memory = bytearray(b"." * 10)
    pending = source.begin(5, memoryview(memory))
    assert memory == b"." * 10
    pending.wait()
    assert memory == DATA[5:15]
    pending.cancel()


def test_an_object_that_is_gone_is_told_as_such(thread: StoreThread) -> None:
    store = MemoryObjectStore(ManualClock())
    with pytest.raises(ObjectNotFoundError, match=r"a\.log"):
        StoreBytes(thread, store, "a.log", 10).begin(0, memoryview(bytearray(5))).wait()
    with pytest.raises(ObjectNotFoundError, match=r"a\.log"):
        FileBytes(FakeFilesystem(ManualClock()), "/bucket/a.log", "a.log", 10)


def test_an_object_that_is_shorter_than_it_was_is_damaged(thread: StoreThread) -> None:
    memory = memoryview(bytearray(20))
    for source in (
        StoreBytes(thread, stored(), "a.log", 210),
        FileBytes(on_disk(), "/bucket/a.log", "a.log", 210),
    ):
        with pytest.raises(CorruptRemoteDataError, match="the object has 200 bytes, 210") as error:
            source.begin(190, memory).wait()
        assert (error.value.key, error.value.position) == ("a.log", 200)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault.UNAVAILABLE, StoreUnavailableError),
        (Fault.TIMEOUT, StoreTimeoutError),
        (Fault.DENIED, StoreDeniedError),
        (Fault.RESET, StoreUnavailableError),
    ],
)
def test_what_the_store_says_is_passed_on(
    thread: StoreThread, fault: Fault, kind: type[Exception]
) -> None:
    store = stored()
    store.fail("get_range", fault, times=FOREVER)
    source = StoreBytes(thread, store, "a.log", len(DATA))
    with pytest.raises(kind):
        source.begin(0, memoryview(bytearray(5))).wait()


def test_what_nobody_waits_for_is_given_up(thread: StoreThread) -> None:
    store = stored()
    store.fail("get_range", Fault.HANG)
    pending = StoreBytes(thread, store, "a.log", len(DATA)).begin(0, memoryview(bytearray(5)))

    async def hanging() -> int:
        for _ in range(1000):
            await asyncio.sleep(0)
            if store.hanging:
                break
        return store.hanging

    assert thread.run(hanging()) == 1
    pending.cancel()

    async def given_up() -> int:
        for _ in range(1000):
            await asyncio.sleep(0)
            if not store.hanging:
                break
        return store.hanging

    assert thread.run(given_up()) == 0
