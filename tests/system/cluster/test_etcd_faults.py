"""A metadata store on etcd while its servers are killed, stopped, restarted, emptied or closed."""

import asyncio
import base64
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bench.etcd_server import EtcdCluster, EtcdServer
from broker.controller.store.etcd.access import EtcdAccess, TlsFiles
from broker.controller.store.etcd.endpoints import REQUEST_MS
from broker.controller.store.etcd.etcd_store import EtcdStore
from broker.controller.store.metadata_store import (
    CompactedError,
    KeyValue,
    OutcomeUnknownError,
    Put,
    StoreDeniedError,
    StoreReplacedError,
    StoreUnavailableError,
    Watch,
)
from broker.controller.store.write_sequence import WriteSequence
from broker.controller.store_compaction import StoreCompaction
from broker.runtime.timer import TimerWheel
from storage.environment.clock import SystemClock
from tests.harness.certificates import make_certificate
from tests.harness.etcd import enable_authentication, etcd_or_skip, open_etcd, post
from tests.harness.store_callers import WITHIN_S, follow, write


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EtcdServer]:
    server = EtcdServer(etcd_or_skip(), tmp_path)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EtcdCluster]:
    cluster = EtcdCluster(etcd_or_skip(), tmp_path)
    cluster.start()
    yield cluster
    cluster.kill()


@contextlib.asynccontextmanager
async def opened(*endpoints: str, floor_revision: int = 0) -> AsyncIterator[EtcdStore]:
    store = await open_etcd(EtcdAccess(endpoints), floor_revision=floor_revision)
    try:
        yield store
    finally:
        await store.aclose()


async def made_by(writes: WriteSequence, change: Put) -> None:
    """Again, as long as the store is too slow for it."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            with contextlib.suppress(StoreUnavailableError):
                await writes.txn(then=[change])
                return


async def found(store: EtcdStore, key: str) -> KeyValue | None:
    """What the store has there, as soon as it says so."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            with contextlib.suppress(StoreUnavailableError):
                return await store.get(key)


async def test_a_watch_misses_and_doubles_nothing_over_restarts(server: EtcdServer) -> None:
    """Each connection ends with the server; the watch goes on behind what it has delivered."""
    async with opened(server.endpoint) as store:
        watch = store.watch("k/")
        following = asyncio.ensure_future(follow(watch, "k/029"))
        for number in range(30):
            if number % 10 == 5:
                server.kill()
                server.start()
            await write(store, f"k/{number:03}")
        assert await following == [f"k/{number:03}" for number in range(30)]
        await watch.aclose()


async def test_while_the_server_is_away_calls_fail_and_the_next_ones_work(
    server: EtcdServer,
) -> None:
    """A refused connection is certain: nothing was sent, nothing is unknown."""
    async with opened(server.endpoint) as store:
        await write(store, "a")
        server.kill()
        for _ in range(2):
            with pytest.raises(StoreUnavailableError) as caught:
                await store.txn(then=[Put("b", b"x")])
        assert not isinstance(caught.value, OutcomeUnknownError)
        server.start()
        await write(store, "c")
        assert await found(store, "b") is None


async def test_a_transaction_without_an_answer_is_neither_repeated_nor_guessed(
    server: EtcdServer,
) -> None:
    """It lies in a server that stands still, which may carry it out or not when it goes on."""
    async with opened(server.endpoint) as store:
        await write(store, "a")
        server.pause()
        with pytest.raises(OutcomeUnknownError):
            await store.txn(then=[Put("a", b"late")])
        server.resume()
        await write(store, "b")


async def test_a_sequence_of_writes_finds_out_what_became_of_each(server: EtcdServer) -> None:
    """What it says of a transaction whose answer was lost is what the store says ever after."""
    async with opened(server.endpoint) as store:
        timer = TimerWheel(asyncio.get_running_loop(), SystemClock())
        writes = WriteSequence(store, "sequence", "w1", timer)
        ends = []
        for number in range(4):
            await made_by(writes, Put("a", b"before"))
            server.pause()
            task = asyncio.ensure_future(writes.txn(then=[Put("a", b"%d" % number)]))
            await asyncio.sleep(REQUEST_MS / 1000 * 1.2)
            server.resume()
            try:
                made = (await task).succeeded
            except StoreUnavailableError:
                made = False
            for _ in range(10):
                item = await found(store, "a")
                assert item is not None
                assert (item.value == b"%d" % number) is made
                await asyncio.sleep(0.05)
            ends.append(made)
        assert len(ends) == 4


async def test_a_member_that_hangs_is_left_for_another(cluster: EtcdCluster) -> None:
    """It accepts connections and answers nothing; a renewal costs 400 ms, no lease."""
    async with opened(*cluster.endpoints) as store:
        lease = await store.grant_lease(10_000)
        await store.txn(then=[Put("live", b"x", lease)])
        watch = store.watch("")
        cluster.members[0].pause()
        async with asyncio.timeout(WITHIN_S):
            while True:
                with contextlib.suppress(StoreUnavailableError):
                    await store.keep_lease_alive(lease)
                    break
        assert store.failovers >= 1
        await write(store, "other")
        assert await follow(watch, "other") == ["other"]
        assert await found(store, "live") is not None
        cluster.members[0].resume()
        await watch.aclose()


async def test_killed_members_one_after_the_other_lose_nothing(cluster: EtcdCluster) -> None:
    """Whichever it is that leads."""
    async with opened(*cluster.endpoints) as store:
        watch = store.watch("k/")
        following = asyncio.ensure_future(follow(watch, "k/029"))
        for number in range(30):
            if number % 10 == 5:
                cluster.members[number // 10].kill()
            if number % 10 == 9:
                cluster.members[number // 10].start()
            await write(store, f"k/{number:03}")
        assert await following == [f"k/{number:03}" for number in range(30)]
        assert len((await store.range("k/")).items) == 30
        await watch.aclose()


async def test_who_was_away_over_a_compaction_lists_again(server: EtcdServer) -> None:
    """The watch says so in place of going on behind the gap."""
    async with opened(server.endpoint) as reader, opened(server.endpoint) as writer:
        watch = reader.watch("", 2)
        await write(writer, "a")
        assert await follow(watch, "a") == ["a"]
        await watch.aclose()
        for number in range(5):
            await write(writer, f"b{number}")
        await writer.compact(5)
        behind = reader.watch("", 3)
        with pytest.raises(CompactedError):
            await follow(behind, "none")


async def test_the_controller_forgets_all_but_the_newest_revisions(server: EtcdServer) -> None:
    """Again and again; what is kept can be watched from its first revision on."""
    async with opened(server.endpoint) as store:
        timer = TimerWheel(asyncio.get_running_loop(), SystemClock())
        compaction = StoreCompaction(
            store,
            timer,
            is_controller=lambda: True,
            revision=lambda: store.revision,
            every_ms=50.0,
            kept=5,
        )
        for number in range(20):
            await write(store, f"a{number:02}")
        async with asyncio.timeout(WITHIN_S):
            while True:
                try:
                    await store.range("", revision=store.revision - 6)
                except CompactedError:
                    break
                await asyncio.sleep(0.05)
        watch = store.watch("", store.revision - 4)
        assert await follow(watch, "a19") == [f"a{number}" for number in range(15, 20)]
        await watch.aclose()
        compaction.close()


async def test_an_emptied_store_is_refused(server: EtcdServer) -> None:
    """Its revisions begin again: what they name is not what they named."""
    async with opened(server.endpoint) as store:
        for number in range(5):
            await write(store, f"k{number}")
        seen = store.revision
        server.kill()
        shutil.rmtree(server.data)
        server.start()
        with pytest.raises(StoreReplacedError):
            await write(store, "more")
        with pytest.raises(StoreReplacedError):
            await store.get("k0")
    with pytest.raises(StoreReplacedError):
        await open_etcd(EtcdAccess((server.endpoint,)), floor_revision=seen)


async def test_an_older_copy_of_the_store_is_refused(server: EtcdServer, tmp_path: Path) -> None:
    """The same cluster, at a revision that has been left behind."""
    async with opened(server.endpoint) as store:
        await write(store, "a")
        server.kill()
        shutil.copytree(server.data, tmp_path / "copy")
        server.start()
        for number in range(3):
            await write(store, f"b{number}")
        server.kill()
        shutil.rmtree(server.data)
        shutil.copytree(tmp_path / "copy", server.data)
        server.start()
        with pytest.raises(StoreReplacedError):
            await write(store, "c")


async def test_names_and_passwords(server: EtcdServer) -> None:
    """Without them, or with wrong ones, the store is closed; a token that ends is renewed."""
    async with opened(server.endpoint) as store:
        await write(store, "a")
    endpoint = server.endpoint
    enable_authentication(endpoint)
    with pytest.raises(StoreDeniedError):
        await open_etcd(EtcdAccess((endpoint,)))
    with pytest.raises(StoreDeniedError):
        await open_etcd(EtcdAccess((endpoint,), username="root", password="wrong"))
    access = EtcdAccess((endpoint,), username="root", password="sesame")
    assert "sesame" not in repr(access)
    store = await open_etcd(access)
    watch = store.watch("")
    await write(store, "b")
    # Tokens are in the server's memory.
    server.kill()
    server.start()
    await write(store, "c")
    assert await follow(watch, "c") == ["b", "c"]
    await store.aclose()


async def test_authentication_is_enabled_and_disabled_meanwhile(server: EtcdServer) -> None:
    """A name is of no use before, and of none after: who has one is let in all the time."""
    access = EtcdAccess((server.endpoint,), username="root", password="sesame")
    store = await open_etcd(access)
    watch = store.watch("")
    await write(store, "a")
    enable_authentication(server.endpoint)
    await store.txn(then=[Put("b", b"x")])
    server.kill()
    server.start()
    await write(store, "c")
    lease = await store.grant_lease(5_000)
    assert await store.keep_lease_alive(lease) > 0
    assert await follow(watch, "c") == ["a", "b", "c"]
    await store.aclose()


async def test_encrypted_connections(tmp_path: Path) -> None:
    """To a server whose certificate our authority has signed, and to no other."""
    program = etcd_or_skip()
    key, certificate = make_certificate(tmp_path)
    files = ("--cert-file", str(certificate), "--key-file", str(key))
    server = EtcdServer(program, tmp_path, *files, scheme="https")
    server.start()
    try:
        access = EtcdAccess((server.endpoint,), tls=TlsFiles(certificate.read_bytes()))
        store = await open_etcd(access)
        await write(store, "a")
        await store.aclose()
        with pytest.raises(StoreUnavailableError):
            await EtcdStore.open(EtcdAccess((server.endpoint,), tls=TlsFiles()))
        with pytest.raises(StoreUnavailableError):
            await EtcdStore.open(EtcdAccess((server.endpoint,)))
    finally:
        server.kill()


async def give_back_a_copy(server: EtcdServer, store: EtcdStore, copy: Path) -> Watch:
    """The store as it was one revision ago, at a new connection; a watch that has seen all."""
    await write(store, "a")
    server.kill()
    shutil.copytree(server.data, copy)
    server.start()
    watch = store.watch("")
    await write(store, "b")
    assert await follow(watch, "b") == ["b"]
    server.kill()
    shutil.rmtree(server.data)
    shutil.copytree(copy, server.data)
    server.start()
    return watch


async def put_until_refused(store: EtcdStore) -> None:
    async with asyncio.timeout(WITHIN_S):
        while True:
            with contextlib.suppress(StoreUnavailableError):
                await store.txn(then=[Put("c", b"x")])


async def test_nothing_is_written_to_another_store_behind_a_new_connection(
    server: EtcdServer, tmp_path: Path
) -> None:
    """A write would bring it to the revision that was seen, and nothing would tell them apart."""
    async with opened(server.endpoint) as store:
        watch = await give_back_a_copy(server, store, tmp_path / "copy")
        await watch.aclose()
        with pytest.raises(StoreReplacedError):
            await put_until_refused(store)
    async with opened(server.endpoint) as fresh:
        assert [item.key for item in (await fresh.range("")).items] == ["a"]


async def test_a_watch_does_not_go_on_at_another_store(server: EtcdServer, tmp_path: Path) -> None:
    """It would wait for a revision that then names another change."""
    async with opened(server.endpoint) as store:
        watch = await give_back_a_copy(server, store, tmp_path / "copy")
        with pytest.raises(StoreReplacedError):
            await follow(watch, "none")


async def put(store: EtcdStore, key: str, *, times: int = 1) -> None:
    """Put it so often, or once or twice more."""
    async with asyncio.timeout(WITHIN_S):
        while times:
            with contextlib.suppress(StoreUnavailableError):
                await store.txn(then=[Put(key, b"x")])
                times -= 1


async def test_a_copy_with_higher_revisions_is_another_store(
    server: EtcdServer, tmp_path: Path
) -> None:
    """As `etcdutl snapshot restore --bump-revision` makes it, or others who write there."""
    (tmp_path / "elsewhere").mkdir()
    elsewhere = EtcdServer(etcd_or_skip(), tmp_path / "elsewhere")
    store = await EtcdStore.unopened(EtcdAccess((server.endpoint,)), witness="a")
    try:
        await put(store, "a")
        server.kill()
        shutil.copytree(server.data, elsewhere.data)
        elsewhere.start()
        async with opened(elsewhere.endpoint) as copy:
            await put(copy, "b", times=20)
        elsewhere.kill()
        server.start()
        watch = store.watch("")
        await put(store, "a")
        await put(store, "c")
        assert (await follow(watch, "c"))[-1] == "c"
        server.kill()
        shutil.rmtree(server.data)
        shutil.copytree(elsewhere.data, server.data)
        server.start()
        with pytest.raises(StoreReplacedError, match="does not have what was written"):
            await follow(watch, "none")
        with pytest.raises(StoreReplacedError):
            await put_until_refused(store)
    finally:
        elsewhere.kill()
        await store.aclose()


async def test_who_only_watched_is_not_deceived_either(server: EtcdServer, tmp_path: Path) -> None:
    """A broker that asks nothing for an hour has seen all revisions by its watch."""
    async with opened(server.endpoint) as store:
        await write(store, "a")
        server.kill()
        shutil.copytree(server.data, tmp_path / "copy")
        server.start()
        watch = store.watch("")
        # Written by another: no answer shows it here.
        await write(store, "a")
        body = {"key": base64.b64encode(b"/varve/b").decode(), "value": "eA=="}
        post(server.endpoint, "kv/put", json.dumps(body))
        assert (await follow(watch, "b"))[-1] == "b"
        server.kill()
        shutil.rmtree(server.data)
        shutil.copytree(tmp_path / "copy", server.data)
        server.start()
        with pytest.raises(StoreReplacedError):
            await follow(watch, "none")
