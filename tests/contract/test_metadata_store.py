"""What every metadata store promises: the same suite for each of them."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from bench.etcd_server import EtcdServer
from broker.controller.store.etcd.access import EtcdAccess
from broker.controller.store.metadata_store import (
    REQUEST_SIZE_MAX,
    TXN_OPERATIONS_MAX,
    Changes,
    CompactedError,
    Compare,
    Delete,
    DeleteResponse,
    DuplicateKeyError,
    Event,
    EventKind,
    FutureRevisionError,
    Get,
    GetResponse,
    KeyValue,
    LeaseNotFoundError,
    MetadataStore,
    Put,
    PutResponse,
    Relation,
    RequestTooLargeError,
    StoreClosedError,
    Target,
    Watch,
    key_absent,
    key_present,
    unchanged_since,
    value_equals,
)
from broker.controller.store.sqlite_store import SqliteStore
from broker.controller.store.unix.store_host import StoreHost
from broker.controller.store.unix.unix_store import UnixStore
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from tests.fakes.broker.metadata_store import MemoryDisk, MemoryStore
from tests.fakes.timer import ManualTimer
from tests.harness.etcd import etcd_or_skip, open_etcd


class Bench(ABC):
    """A store that can be opened again on what it left behind.

    Attributes:
        lease_ms: A lease's time that can be waited for.
    """

    lease_ms = 10_000

    def __init__(self) -> None:
        self.store: MetadataStore

    async def open(self) -> MetadataStore:
        self.store = await self.opened()
        return self.store

    async def reopen(self) -> MetadataStore:
        """What stores the keys stops and starts again."""
        await self.store.aclose()
        return await self.open()

    @abstractmethod
    async def opened(self) -> MetadataStore: ...

    @abstractmethod
    async def pass_ms(self, ms: float) -> None: ...

    async def aclose(self) -> None:
        await self.store.aclose()


class LocalBench(Bench):
    """A store of this process, whose time is the test's."""

    def __init__(self, opener: Callable[[ManualTimer], Awaitable[MetadataStore]]) -> None:
        super().__init__()
        self._opener = opener
        self._timer = ManualTimer()

    async def opened(self) -> MetadataStore:
        return await self._opener(self._timer)

    async def pass_ms(self, ms: float) -> None:
        self._timer.advance(ms)
        await settle()


class EtcdBench(Bench):
    """An etcd server of its own, in real time."""

    lease_ms = 2_000

    def __init__(self, server: EtcdServer) -> None:
        super().__init__()
        self._server = server

    async def opened(self) -> MetadataStore:
        return await open_etcd(EtcdAccess((self._server.endpoint,)))

    async def reopen(self) -> MetadataStore:
        self._server.kill()
        self._server.start()
        return await super().reopen()

    async def pass_ms(self, ms: float) -> None:
        await asyncio.sleep(ms / 1000)

    async def aclose(self) -> None:
        await super().aclose()
        self._server.kill()


class UnixBench(Bench):
    """A SQLite store that this process serves over a socket, to a client in a thread.

    Its time is the test's.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory
        self._timer = ManualTimer()
        self._host: StoreHost | None = None

    async def opened(self) -> MetadataStore:
        if self._host is None:
            self._host = await StoreHost.open(
                str(self._directory / "store"),
                Environment(
                    clock=self._timer.clock,
                    timer=self._timer,
                    filesystem=LocalFilesystem(),
                    randomness=SeededRandomness(1),
                    run_blocking=asyncio.to_thread,
                ),
            )
        return await UnixStore.open(self._host.address.removeprefix("unix:"))

    async def reopen(self) -> MetadataStore:
        assert self._host is not None
        await self._host.aclose()
        self._host = None
        return await super().reopen()

    async def pass_ms(self, ms: float) -> None:
        self._timer.advance(ms)
        await settle()

    async def aclose(self) -> None:
        await super().aclose()
        assert self._host is not None
        await self._host.aclose()


@pytest.fixture(params=["memory", "sqlite", "etcd", "unix"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    disk = MemoryDisk()

    async def open_memory(timer: ManualTimer) -> MetadataStore:
        return MemoryStore(timer, disk)

    async def open_sqlite(timer: ManualTimer) -> MetadataStore:
        return await SqliteStore.open(str(tmp_path / "metadata.db"), timer=timer)

    bench: Bench
    if request.param == "etcd":
        server = EtcdServer(etcd_or_skip(), tmp_path)
        server.start()
        bench = EtcdBench(server)
    elif request.param == "unix":
        bench = UnixBench(tmp_path)
    else:
        bench = LocalBench(open_memory if request.param == "memory" else open_sqlite)
    await bench.open()
    yield bench
    await bench.aclose()


@pytest.fixture
def store(bench: Bench) -> MetadataStore:
    return bench.store


async def put(store: MetadataStore, key: str, value: bytes, lease: int = 0) -> int:
    return (await store.txn(then=[Put(key, value, lease)])).revision


async def take(watch: Watch, count: int) -> list[Event]:
    """The next changes, of as many revisions as it takes."""
    events: list[Event] = []
    while len(events) < count:
        events.extend((await take_item(watch)).events)
    assert len(events) == count
    return events


async def take_item(watch: Watch) -> Changes:
    return await asyncio.wait_for(anext(aiter_of(watch)), 30)


def aiter_of(watch: Watch) -> AsyncIterator[Changes]:
    return aiter(watch)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def until_gone(store: MetadataStore, key: str) -> None:
    for _ in range(500):
        if await store.get(key) is None:
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"{key} is still there")


async def test_key_that_was_never_put_is_absent(store: MetadataStore) -> None:
    """An empty store holds nothing and is at revision 1, as etcd is."""
    assert await store.get("a") is None
    found = await store.range("")
    assert (found.revision, found.items) == (1, ())


async def test_revisions_and_versions_count_as_in_etcd(store: MetadataStore) -> None:
    """Each changing transaction is one revision; a key keeps where it began and counts its puts."""
    assert await put(store, "a", b"1") == 2
    assert await put(store, "b", b"1") == 3
    assert await put(store, "a", b"2") == 4
    assert await store.get("a") == KeyValue("a", b"2", 2, 4, 2)
    assert await store.get("b") == KeyValue("b", b"1", 3, 3, 1)


async def test_key_created_again_starts_over(store: MetadataStore) -> None:
    """A deleted key leaves no version behind."""
    await put(store, "a", b"1")
    await store.txn(then=[Delete("a")])
    await put(store, "a", b"2")
    assert await store.get("a") == KeyValue("a", b"2", 4, 4, 1)


async def test_all_changes_of_a_transaction_share_a_revision(store: MetadataStore) -> None:
    """Nobody can see half of a transaction."""
    result = await store.txn(then=[Put("a", b"1"), Put("b", b"2")])
    assert result.revision == 2
    found = await store.range("")
    assert [(i.key, i.mod_revision) for i in found.items] == [("a", 2), ("b", 2)]


async def test_transaction_without_effect_makes_no_revision(store: MetadataStore) -> None:
    """Reading, and deleting what is not there, changes nothing."""
    assert (await store.txn(then=[Get("a"), Delete("a"), Delete("x/", prefix=True)])).revision == 1
    assert (await store.txn()).revision == 1


async def test_responses_follow_the_operations(store: MetadataStore) -> None:
    """One response per operation; later ones see what earlier ones did."""
    await put(store, "d/1", b"x")
    await put(store, "d/2", b"y")
    old = await store.get("d/1")
    result = await store.txn(
        then=[
            Put("a", b"1"),
            Get("a"),
            Get("d/", prefix=True),
            Delete("d/", prefix=True),
            Get("d/1"),
        ]
    )
    created = KeyValue("a", b"1", 4, 4, 1)
    assert result.succeeded
    assert result.responses[0] == PutResponse(None)
    assert result.responses[1] == GetResponse((created,))
    assert isinstance(result.responses[2], GetResponse)
    assert [i.key for i in result.responses[2].items] == ["d/1", "d/2"]
    assert result.responses[2].items[0] == old
    assert result.responses[3:] == (DeleteResponse(2), GetResponse(()))


async def test_failed_comparison_runs_the_other_list(store: MetadataStore) -> None:
    """Compare-and-set: the loser changes nothing and can read who won."""
    first = await store.txn([key_absent("a")], [Put("a", b"first")])
    second = await store.txn([key_absent("a")], [Put("a", b"second")], [Get("a")])
    assert first.succeeded
    assert not second.succeeded
    assert second.revision == 2
    assert second.responses == (GetResponse((KeyValue("a", b"first", 2, 2, 1),)),)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (key_present("a"), True),
        (key_absent("a"), False),
        (key_absent("none"), True),
        (key_present("none"), False),
        (unchanged_since("a", 3), True),
        (unchanged_since("a", 2), False),
        (unchanged_since("none", 0), True),
        (value_equals("a", b"2"), True),
        (value_equals("a", b"1"), False),
        (value_equals("none", b""), False),
        (Compare("none", Target.VALUE, Relation.NOT_EQUAL, b"x"), False),
        (Compare("a", Target.VALUE, Relation.NOT_EQUAL, b"x"), True),
        (Compare("a", Target.VALUE, Relation.LESS, b"3"), True),
        (Compare("a", Target.VALUE, Relation.GREATER, b"10"), True),
        (Compare("a", Target.VERSION, Relation.EQUAL, 2), True),
        (Compare("a", Target.VERSION, Relation.GREATER, 2), False),
        (Compare("a", Target.VERSION, Relation.LESS, 3), True),
        (Compare("a", Target.CREATE_REVISION, Relation.EQUAL, 2), True),
        (Compare("a", Target.CREATE_REVISION, Relation.NOT_EQUAL, 2), False),
        (Compare("a", Target.MOD_REVISION, Relation.LESS, 3), False),
        (Compare("none", Target.CREATE_REVISION, Relation.EQUAL, 0), True),
    ],
)
async def test_comparisons(store: MetadataStore, condition: Compare, holds: bool) -> None:
    """Each target and relation; a missing key counts as 0 and has no value at all."""
    await put(store, "a", b"1")
    await put(store, "a", b"2")
    assert (await store.txn([condition])).succeeded is holds


async def test_all_comparisons_must_hold(store: MetadataStore) -> None:
    """One that fails is enough."""
    result = await store.txn([key_absent("a"), key_present("b")], [Put("a", b"1")])
    assert not result.succeeded
    assert await store.get("a") is None


async def test_range_is_ordered_and_exact(store: MetadataStore) -> None:
    """Only keys with the prefix, in order of their bytes."""
    for key in ("t/b", "t/a", "t", "t0", "s/z", "t/a/x", "t/é"):
        await put(store, key, key.encode())
    found = await store.range("t/")
    assert [item.key for item in found.items] == ["t/a", "t/a/x", "t/b", "t/é"]
    assert found.revision == 8


async def test_range_of_the_past(store: MetadataStore) -> None:
    """The store reads as it was, while it remembers."""
    await put(store, "a", b"1")
    await put(store, "b", b"1")
    await store.txn(then=[Put("a", b"2"), Delete("b")])
    then = await store.range("", revision=3)
    assert [(i.key, i.value, i.mod_revision) for i in then.items] == [
        ("a", b"1", 2),
        ("b", b"1", 3),
    ]
    assert then.revision == 4
    assert [i.key for i in (await store.range("", revision=2)).items] == ["a"]
    assert (await store.range("", revision=1)).items == ()
    assert (await store.range("", revision=4)).items == (await store.range("")).items


async def test_range_of_the_future_is_refused(store: MetadataStore) -> None:
    """Nobody gets an answer that may turn out wrong."""
    with pytest.raises(FutureRevisionError):
        await store.range("", revision=2)


@pytest.mark.parametrize("side", ["compare", "then", "otherwise"])
async def test_too_many_operations_are_refused(store: MetadataStore, side: str) -> None:
    """128 in each list is the most etcd takes, so it is here; nothing is done beyond."""
    lists: dict[str, list[object]] = {"compare": [], "then": [], "otherwise": []}
    make = key_absent if side == "compare" else lambda key: Put(key, b"")
    lists[side] = [make(f"k{i}") for i in range(TXN_OPERATIONS_MAX)]
    await store.txn(**lists)  # type: ignore[arg-type]  # lists of the right kinds by construction
    lists[side].append(make("one more"))
    with pytest.raises(RequestTooLargeError):
        await store.txn(**lists)  # type: ignore[arg-type]  # as above
    assert await store.get("one more") is None


async def test_too_many_bytes_are_refused(store: MetadataStore) -> None:
    """1.5 MiB is the most etcd takes."""
    await put(store, "a", bytes(REQUEST_SIZE_MAX - 1000))
    with pytest.raises(RequestTooLargeError):
        await put(store, "b", bytes(REQUEST_SIZE_MAX))
    assert await store.get("b") is None


@pytest.mark.parametrize(
    "operations",
    [
        [Put("a", b"1"), Put("a", b"2")],
        [Put("a", b"1"), Delete("a")],
        [Delete("d/", prefix=True), Put("d/1", b"2")],
    ],
)
async def test_key_changed_twice_is_refused(
    store: MetadataStore, operations: list[Put | Delete]
) -> None:
    """As in etcd: it would not say which one counts."""
    with pytest.raises(DuplicateKeyError):
        await store.txn(then=operations)
    assert (await store.range("")).items == ()


async def test_watch_delivers_every_change_once_in_order(store: MetadataStore) -> None:
    """Creation, change, deletion, with what was there before; nothing from outside the prefix."""
    watch = store.watch("t/")
    await put(store, "t/a", b"1")
    await put(store, "s/a", b"1")
    await put(store, "t/a", b"2")
    await store.txn(then=[Delete("t/a"), Put("t/b", b"3")])
    first, second, third, fourth = await take(watch, 4)
    one, two = KeyValue("t/a", b"1", 2, 2, 1), KeyValue("t/a", b"2", 2, 4, 2)
    assert first == Event(EventKind.PUT, "t/a", 2, one, None)
    assert second == Event(EventKind.PUT, "t/a", 4, two, one)
    assert third == Event(EventKind.DELETE, "t/a", 5, None, two)
    assert (fourth.kind, fourth.key, fourth.revision) == (EventKind.PUT, "t/b", 5)
    await watch.aclose()


async def test_watch_from_a_revision_of_the_past(store: MetadataStore) -> None:
    """Listing at revision r and watching from r + 1 misses nothing and repeats nothing."""
    await put(store, "a", b"1")
    listed = await store.range("")
    await put(store, "a", b"2")
    watch = store.watch("", listed.revision + 1)
    await put(store, "a", b"3")
    events = await take(watch, 2)
    assert [(e.revision, e.current and e.current.value) for e in events] == [(3, b"2"), (4, b"3")]
    await watch.aclose()


async def test_closed_watch_ends(store: MetadataStore) -> None:
    """Also for who waits for its next change."""
    watch = store.watch("")
    waiting = asyncio.ensure_future(anext(aiter_of(watch), None))
    await settle()
    await watch.aclose()
    await watch.aclose()
    assert await asyncio.wait_for(waiting, 30) is None
    await put(store, "a", b"1")
    assert await anext(aiter_of(watch), None) is None


async def test_watch_ends_with_the_store(bench: Bench) -> None:
    """Nobody waits for ever for a store that is gone."""
    watch = bench.store.watch("")
    waiting = asyncio.ensure_future(anext(aiter_of(watch), None))
    await settle()
    await bench.store.aclose()
    assert await asyncio.wait_for(waiting, 30) is None
    await bench.open()


async def test_slow_watcher_is_told_to_list_again(store: MetadataStore) -> None:
    """What was buffered is delivered, then the watch ends; the memory it takes is bounded."""
    watch = store.watch("w/")
    for first in range(0, 6000, 100):
        await store.txn(then=[Put(f"w/{first + i}", b"") for i in range(100)])
    seen: list[Event] = []

    async def read_all() -> None:
        while True:
            seen.extend((await anext(aiter_of(watch))).events)

    with pytest.raises(CompactedError):
        await read_all()
    assert 1000 <= len(seen) < 6000


async def test_changes_of_a_revision_come_together(store: MetadataStore) -> None:
    """Who follows the store never acts on half of a transaction, however large it is."""
    watch = store.watch("t/")
    await store.txn(then=[Put(f"t/{i:03}", bytes(9_000)) for i in range(TXN_OPERATIONS_MAX)])
    await store.txn(then=[Put("t/a", b"1"), Put("s/a", b"1"), Put("t/b", b"1")])
    await store.txn(then=[Delete("t/", prefix=True)])
    items = [await take_item(watch) for _ in range(3)]
    assert [(item.revision, len(item.events)) for item in items] == [
        (2, TXN_OPERATIONS_MAX),
        (3, 2),
        (4, TXN_OPERATIONS_MAX + 2),
    ]
    assert all(event.revision == item.revision for item in items for event in item.events)
    await watch.aclose()


async def test_progress_comes_behind_all_changes(store: MetadataStore) -> None:
    """Also of revisions that have changed nothing under the prefix."""
    watch = store.watch("t/")
    await put(store, "t/a", b"1")
    revision = await put(store, "s/a", b"1")
    await watch.request_progress()
    assert (await take_item(watch)).revision == 2
    assert await take_item(watch) == Changes(revision, ())
    await watch.request_progress()
    assert await take_item(watch) == Changes(revision, ())
    await put(store, "t/a", b"2")
    assert [event.revision for event in await take(watch, 1)] == [revision + 1]
    await watch.aclose()


async def test_range_in_pages_shows_one_revision(store: MetadataStore) -> None:
    """What changes between two pages is not seen by the second."""
    for key in ("t/a", "t/b", "t/c", "t/d", "u"):
        await put(store, key, b"old")
    first = await store.range("t/", limit=2)
    assert ([item.key for item in first.items], first.more) == (["t/a", "t/b"], True)
    await store.txn(then=[Put("t/bb", b"new"), Put("t/c", b"new"), Delete("t/d")])
    second = await store.range("t/", revision=first.revision, after="t/b", limit=2)
    assert [(i.key, i.value) for i in second.items] == [("t/c", b"old"), ("t/d", b"old")]
    assert not second.more
    now = await store.range("t/", after="t/b", limit=2)
    assert ([item.key for item in now.items], now.more) == (["t/bb", "t/c"], False)
    assert (await store.range("t/", after="t/z")).items == ()


async def test_range_of_more_keys_than_a_page(store: MetadataStore) -> None:
    """Whoever wants all gets all."""
    for first in range(0, 2_300, 100):
        await store.txn(then=[Put(f"k{first + i:05}", b"") for i in range(100)])
    found = await store.range("")
    assert [item.key for item in found.items] == [f"k{i:05}" for i in range(2_300)]
    assert not found.more


async def test_compacted_revisions_are_forgotten(store: MetadataStore) -> None:
    """They can neither be read nor watched, and whoever asks is told; what follows can."""
    for value in (b"1", b"2", b"3"):
        await put(store, "a", value)
    await store.compact(3)
    with pytest.raises(CompactedError):
        await store.range("", revision=2)
    watch = store.watch("", 2)
    with pytest.raises(CompactedError) as caught:
        await take_item(watch)
    assert caught.value.compacted_revision >= 2
    assert [item.value for item in (await store.range("", revision=3)).items] == [b"2"]
    later = store.watch("", 4)
    await put(store, "a", b"4")
    assert [event.revision for event in await take(later, 2)] == [4, 5]
    await later.aclose()


async def test_what_cannot_be_compacted(store: MetadataStore) -> None:
    """The future, and what is forgotten already."""
    await put(store, "a", b"1")
    await put(store, "a", b"2")
    with pytest.raises(FutureRevisionError):
        await store.compact(4)
    await store.compact(3)
    with pytest.raises(CompactedError):
        await store.compact(2)


@pytest.mark.parametrize("bench", ["memory", "sqlite", "unix"], indirect=True)
async def test_a_local_store_forgets_the_past_at_a_restart(bench: Bench) -> None:
    """Neither read nor watched, but said so."""
    await put(bench.store, "a", b"1")
    await put(bench.store, "a", b"2")
    store = await bench.reopen()
    revision = (await store.range("")).revision
    assert revision == 3
    with pytest.raises(CompactedError):
        await store.range("", revision=2)
    watch = store.watch("", 2)
    with pytest.raises(CompactedError) as caught:
        await take_item(watch)
    assert caught.value.compacted_revision >= 2
    later = store.watch("", revision + 1)
    await put(store, "a", b"3")
    assert [event.revision for event in await take(later, 1)] == [4]
    await later.aclose()


async def test_everything_survives_a_restart(bench: Bench) -> None:
    """Keys, revisions, versions, leases: as if nothing had happened."""
    lease = await bench.store.grant_lease(60_000)
    await put(bench.store, "a", b"\x00\xff")
    await put(bench.store, "a", bytes(range(256)))
    await put(bench.store, "leased", b"x", lease)
    await put(bench.store, "gone", b"x")
    await bench.store.txn(then=[Delete("gone")])
    before = await bench.store.range("")
    store = await bench.reopen()
    assert await store.range("") == before
    assert await put(store, "b", b"1") == before.revision + 1
    assert await store.grant_lease(1000) != lease


async def test_lease_ends_in_time_and_takes_its_keys(bench: Bench) -> None:
    """All of them in one revision, and nothing else."""
    store = bench.store
    lease = await store.grant_lease(bench.lease_ms)
    await put(store, "mine/1", b"x", lease)
    await put(store, "mine/2", b"x", lease)
    await put(store, "other", b"x")
    watch = store.watch("")
    await bench.pass_ms(bench.lease_ms * 0.7)
    assert await store.get("mine/1") is not None
    await bench.pass_ms(bench.lease_ms * 0.4)
    await until_gone(store, "mine/1")
    assert [item.key for item in (await store.range("")).items] == ["other"]
    events = await take(watch, 2)
    assert [(e.kind, e.key) for e in events] == [
        (EventKind.DELETE, "mine/1"),
        (EventKind.DELETE, "mine/2"),
    ]
    assert events[0].revision == events[1].revision
    with pytest.raises(LeaseNotFoundError):
        await store.keep_lease_alive(lease)
    await watch.aclose()


async def test_lease_kept_alive_does_not_end(bench: Bench) -> None:
    """Each call starts its time anew."""
    store = bench.store
    lease = await store.grant_lease(bench.lease_ms)
    await put(store, "mine", b"x", lease)
    for _ in range(3):
        await bench.pass_ms(bench.lease_ms * 0.7)
        assert await store.keep_lease_alive(lease) == bench.lease_ms
    assert await store.get("mine") is not None
    await bench.pass_ms(bench.lease_ms * 1.1)
    await until_gone(store, "mine")


async def test_key_put_again_without_its_lease_stays(bench: Bench) -> None:
    """A put replaces the lease as it replaces the value."""
    store = bench.store
    lease = await store.grant_lease(10_000)
    await put(store, "a", b"x", lease)
    await put(store, "b", b"x", lease)
    await put(store, "a", b"y")
    await store.revoke_lease(lease)
    assert [item.key for item in (await store.range("")).items] == ["a"]


async def test_revoked_lease_is_gone(store: MetadataStore) -> None:
    """Its keys with it, and it can be used for nothing."""
    lease = await store.grant_lease(10_000)
    await put(store, "a", b"x", lease)
    await store.revoke_lease(lease)
    assert await store.get("a") is None
    with pytest.raises(LeaseNotFoundError):
        await store.revoke_lease(lease)
    with pytest.raises(LeaseNotFoundError):
        await store.keep_lease_alive(lease)
    with pytest.raises(LeaseNotFoundError):
        await store.txn(then=[Put("b", b"x"), Put("c", b"x", lease)])
    assert (await store.range("")).items == ()


async def test_lease_gets_its_full_time_after_a_restart(bench: Bench) -> None:
    """Its holder may still be alive: it is given the chance to say so, and no more."""
    lease = await bench.store.grant_lease(bench.lease_ms)
    await put(bench.store, "a", b"x", lease)
    await bench.pass_ms(bench.lease_ms * 0.7)
    store = await bench.reopen()
    await bench.pass_ms(bench.lease_ms * 0.7)
    assert await store.get("a") is not None
    await bench.pass_ms(bench.lease_ms * 0.4)
    await until_gone(store, "a")


async def test_concurrent_increments_are_all_counted(store: MetadataStore) -> None:
    """Compare-and-set among many: no update is lost."""

    async def increment() -> None:
        while True:
            item = await store.get("n")
            value = int(item.value) + 1 if item else 1
            condition = unchanged_since("n", item.mod_revision if item else 0)
            if (await store.txn([condition], [Put("n", str(value).encode())])).succeeded:
                return

    await asyncio.gather(*(increment() for _ in range(30)))
    item = await store.get("n")
    assert item is not None
    assert (item.value, item.version) == (b"30", 30)


async def test_cancelled_caller_leaves_the_store_whole(bench: Bench) -> None:
    """Its transaction is carried out or not, and what readers see is what is stored."""
    task = asyncio.ensure_future(put(bench.store, "a", b"1"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await put(bench.store, "b", b"1")
    before = await bench.store.range("")
    store = await bench.reopen()
    assert await store.range("") == before


async def test_closed_store_refuses_everything(bench: Bench) -> None:
    """And closing it again is harmless."""
    store = bench.store
    await store.aclose()
    await store.aclose()
    with pytest.raises(StoreClosedError):
        await store.get("a")
    with pytest.raises(StoreClosedError):
        await store.range("")
    with pytest.raises(StoreClosedError):
        await store.txn(then=[Put("a", b"1")])
    with pytest.raises(StoreClosedError):
        store.watch("")
    with pytest.raises(StoreClosedError):
        await store.grant_lease(1000)
    await bench.open()
