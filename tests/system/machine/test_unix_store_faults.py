"""A store on a socket whose server is killed, stopped, restarted, emptied or exchanged."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bench.unix_store_server import UnixStoreServer
from broker.controller.store.metadata_store import (
    CompactedError,
    LeaseNotFoundError,
    OutcomeUnknownError,
    Put,
    StoreReplacedError,
    StoreUnavailableError,
)
from broker.controller.store.unix.link import REQUEST_MS
from broker.controller.store.unix.store_host import SOCKET_FILE, STORE_FILE
from broker.controller.store.unix.unix_store import UnixStore
from broker.controller.store.write_sequence import WriteSequence
from broker.runtime.timer import TimerWheel
from storage.environment.clock import SystemClock
from tests.harness.store_callers import follow, write

LEASE_MS = 6_000
"""Longer than a busy machine needs from a grant to what comes next."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnixStoreServer]:
    server = UnixStoreServer(tmp_path)
    server.start()
    yield server
    server.kill()


@contextlib.asynccontextmanager
async def opened(server: UnixStoreServer, *, floor_revision: int = 0) -> AsyncIterator[UnixStore]:
    async with asyncio.timeout(60):
        while True:
            try:
                store = await UnixStore.open(server.socket, floor_revision=floor_revision)
                break
            except StoreUnavailableError:
                await asyncio.sleep(0.05)
    try:
        yield store
    finally:
        await store.aclose()


async def follow_and_list(store: UnixStore, prefix: str, last: str) -> set[str]:
    """All keys, as an owner of a watch learns them that lists again when it has to."""
    keys: set[str] = set()
    async with asyncio.timeout(60):
        while last not in keys:
            try:
                listed = await store.range(prefix)
            except StoreUnavailableError:
                await asyncio.sleep(0.05)
                continue
            keys |= {item.key for item in listed.items}
            if last in keys:
                break
            watch = store.watch(prefix, listed.revision + 1)
            with contextlib.suppress(CompactedError):
                async for changes in watch:
                    keys |= {event.key for event in changes.events}
                    if last in keys:
                        break
            await watch.aclose()
    return keys


async def test_a_watch_that_has_seen_all_goes_on_over_restarts(server: UnixStoreServer) -> None:
    """Nothing is missed or doubled; the history that a restart forgets is not needed."""
    async with opened(server) as store:
        watch = store.watch("k/")
        for number in range(9):
            key = f"k/{number:03}"
            await write(store, key)
            # Beside the prefix, too: only progress tells the watch of it.
            revision = await write(store, f"other/{number}")
            assert await follow(watch, key) == [key]
            if number % 3 == 2:
                await watch.request_progress()
                while (await asyncio.wait_for(anext(aiter(watch)), 60)).revision < revision:
                    pass
                server.kill()
                server.start()
        await watch.aclose()
        assert store.failovers >= 2


async def test_an_owner_that_lists_again_misses_nothing_over_kills(
    server: UnixStoreServer,
) -> None:
    async with opened(server) as store, opened(server) as reader:
        following = asyncio.ensure_future(follow_and_list(reader, "k/", "k/039"))
        for number in range(40):
            if number % 10 == 5:
                server.kill()
                server.start()
            await write(store, f"k/{number:03}")
        assert await following == {f"k/{number:03}" for number in range(40)}
        found = await store.range("k/")
        assert len(found.items) == 40
        revisions = [item.mod_revision for item in found.items]
        assert revisions == sorted(set(revisions)), "no revision is given twice"


async def test_while_the_server_is_away_calls_fail_and_the_next_ones_work(
    server: UnixStoreServer,
) -> None:
    """A refused connection is certain: nothing was sent, nothing is unknown."""
    async with opened(server) as store:
        await write(store, "a")
        server.kill()
        with contextlib.suppress(OutcomeUnknownError, StoreUnavailableError):
            # The end of the connection may not have been heard of.
            await store.get("a")
        for _ in range(3):
            with pytest.raises(StoreUnavailableError) as caught:
                await store.txn(then=[Put("b", b"x")])
            assert not isinstance(caught.value, OutcomeUnknownError)
        server.start()
        await write(store, "c")
        assert await store.get("b") is None


async def test_a_transaction_without_an_answer_is_neither_repeated_nor_guessed(
    server: UnixStoreServer,
) -> None:
    """It lies in a server that stands still, which may carry it out or not when it goes on."""
    async with opened(server) as store:
        await write(store, "a")
        server.pause()
        with pytest.raises(OutcomeUnknownError):
            await store.txn(then=[Put("a", b"late")])
        server.resume()
        await write(store, "b")


async def test_a_sequence_of_writes_finds_out_what_became_of_each(
    server: UnixStoreServer,
) -> None:
    """Killed or stopped in the middle: what it says is what the store says ever after."""
    async with opened(server) as store:
        timer = TimerWheel(asyncio.get_running_loop(), SystemClock())
        writes = WriteSequence(store, "sequence", "w1", timer)
        for number in range(6):
            await until_made(writes, Put("a", b"before"))
            if number % 2:
                server.pause()
                task = asyncio.ensure_future(writes.txn(then=[Put("a", b"%d" % number)]))
                await asyncio.sleep(REQUEST_MS / 1000 * 1.1)
                server.resume()
            else:
                task = asyncio.ensure_future(writes.txn(then=[Put("a", b"%d" % number)]))
                await asyncio.sleep(0.0005 * number)
                server.kill()
                server.start()
            try:
                made = (await asyncio.wait_for(task, 60)).succeeded
            except StoreUnavailableError:
                made = False
            for _ in range(5):
                async with asyncio.timeout(60):
                    while True:
                        with contextlib.suppress(StoreUnavailableError):
                            item = await store.get("a")
                            break
                        await asyncio.sleep(0.02)
                assert item is not None
                assert (item.value == b"%d" % number) is made
                await asyncio.sleep(0.02)
        timer.close()


async def until_made(writes: WriteSequence, change: Put) -> None:
    """Whatever becomes of the connection meanwhile."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(StoreUnavailableError):
                await writes.txn(then=[change])
                return
            await asyncio.sleep(0.02)


async def renewed(store: UnixStore, lease: int) -> int:
    """The lease's time, from whatever connection gives it."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(StoreUnavailableError):
                return await store.keep_lease_alive(lease)
            await asyncio.sleep(0.02)


async def test_no_lease_ends_because_its_server_was_killed(server: UnixStoreServer) -> None:
    """It gets its whole time at the next start; without a renewal it ends then."""
    async with opened(server) as store:
        kept, left = await store.grant_lease(LEASE_MS), await store.grant_lease(LEASE_MS)
        await store.txn(then=[Put("kept", b"", kept), Put("left", b"", left)])
        server.kill()
        await asyncio.sleep(LEASE_MS / 1000 + 0.5)
        server.start()
        assert await renewed(store, kept) == LEASE_MS
        assert await store.get("left") is not None
        async with asyncio.timeout(60):
            while await store.get("left") is not None:
                await renewed(store, kept)
                await asyncio.sleep(0.1)
        assert await store.get("kept") is not None
        with pytest.raises(LeaseNotFoundError):
            await store.keep_lease_alive(left)


async def test_no_lease_ends_because_its_server_stood_still(server: UnixStoreServer) -> None:
    """An etcd that wakes revokes what it takes for expired; this one asks again."""
    async with opened(server) as store:
        lease = await store.grant_lease(LEASE_MS)
        await store.txn(then=[Put("live", b"", lease)])
        server.pause()
        await asyncio.sleep(LEASE_MS / 1000 + 2.0)
        server.resume()
        assert await renewed(store, lease) == LEASE_MS
        item = await store.get("live")
        assert item is not None
        assert item.version == 1


async def test_a_server_that_says_nothing_is_left_and_found_again(
    server: UnixStoreServer,
) -> None:
    async with opened(server) as store:
        watch = store.watch("")
        server.pause()
        async with asyncio.timeout(60):
            while True:
                try:
                    await store.txn(then=[Put("sent", b"")])
                except OutcomeUnknownError:
                    # Over the connection that is not given up yet.
                    continue
                except StoreUnavailableError:
                    break
            with pytest.raises(StoreUnavailableError) as caught:
                await store.txn(then=[Put("never", b"")])
            assert not isinstance(caught.value, OutcomeUnknownError)
        server.resume()
        await write(store, "a")
        assert [key for key in await follow(watch, "a") if key != "sent"] == ["a"]
        assert await store.get("never") is None
        await watch.aclose()


async def test_an_older_copy_of_the_store_is_refused(
    server: UnixStoreServer, tmp_path: Path
) -> None:
    """The same store, at a revision that has been left behind."""
    async with opened(server) as store:
        await write(store, "a")
        assert server.stop() == 0
        shutil.copy(server.directory / STORE_FILE, tmp_path / "copy")
        server.start()
        for number in range(3):
            await write(store, f"b{number}")
        seen = store.revision
        server.kill()
        for name in (STORE_FILE, f"{STORE_FILE}-wal", f"{STORE_FILE}-shm"):
            (server.directory / name).unlink(missing_ok=True)
        shutil.copy(tmp_path / "copy", server.directory / STORE_FILE)
        server.start()
        with pytest.raises(StoreReplacedError, match="has been at"):
            await write(store, "c")
    with pytest.raises(StoreReplacedError):
        async with opened(server, floor_revision=seen):
            pass


async def test_a_store_that_was_made_anew_is_refused(server: UnixStoreServer) -> None:
    """Its revisions begin again: what they name is not what they named."""
    async with opened(server) as store:
        await write(store, "a")
        server.kill()
        shutil.rmtree(server.directory)
        server.start()
        with pytest.raises(StoreReplacedError, match="in place of"):
            await write(store, "b")


async def test_a_server_that_ends_leaves_no_socket(server: UnixStoreServer) -> None:
    """And one that was killed leaves one that the next replaces."""
    async with opened(server) as store:
        await write(store, "a")
    server.kill()
    assert (server.directory / SOCKET_FILE).is_socket()
    server.start()
    async with opened(server) as store:
        assert await store.get("a") is not None
    assert server.stop() == 0
    assert not (server.directory / SOCKET_FILE).exists()
