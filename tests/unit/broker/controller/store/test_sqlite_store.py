"""What only the SQLite store promises; the rest is in tests/contract."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from broker.controller.store.metadata_store import Put, StoreUnavailableError, unchanged_since
from broker.controller.store.sqlite_store import (
    ASK_AGAIN_MS,
    FORMAT_VERSION,
    SqliteStore,
    StoreFormatError,
)
from tests.fakes.timer import ManualTimer

WRITER = """
import asyncio, sys
from broker.controller.store.metadata_store import Put
from broker.controller.store.sqlite_store import SqliteStore
from tests.fakes.timer import ManualTimer

async def main():
    store = await SqliteStore.open(sys.argv[1], timer=ManualTimer())
    first = (await store.range("")).revision

    async def write(lane):
        n = 0
        while True:
            n += 1
            value = str(n).encode()
            result = await store.txn(then=[Put(f"{lane}/a", value), Put(f"{lane}/b", value)])
            print(lane, n, result.revision, flush=True)

    await asyncio.gather(*(write(lane) for lane in range(4)))

asyncio.run(main())
"""


async def open_store(path: Path) -> SqliteStore:
    return await SqliteStore.open(str(path), timer=ManualTimer())


async def test_a_file_that_may_only_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite opens it all the same, and only the first change would be refused."""
    path = tmp_path / "metadata.db"
    await (await open_store(path)).aclose()
    connect = sqlite3.connect

    def read_only(path: str, **more: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(path, **more)
        connection.execute("PRAGMA query_only=1")
        return connection

    monkeypatch.setattr(sqlite3, "connect", read_only)
    with pytest.raises(StoreUnavailableError, match="cannot be written") as refused:
        await open_store(path)
    assert str(path) in str(refused.value)
    monkeypatch.undo()
    await (await open_store(path)).aclose()


async def test_every_acknowledged_transaction_survives_kill_9(tmp_path: Path) -> None:
    """Killed in the middle of writing, five times on one file.

    Nothing acknowledged is lost, no transaction is there by half, and revisions go on.
    """
    path = tmp_path / "metadata.db"
    last_revision = 0
    for _ in range(5):
        process = subprocess.Popen(  # noqa: ASYNC220  because nothing else runs on this loop
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        acknowledged: dict[str, tuple[int, int]] = {}
        for _ in range(120):
            lane, n, revision = process.stdout.readline().split()
            acknowledged[lane] = (int(n), int(revision))
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read()
        process.wait()
        process.stdout.close()
        for line in rest.splitlines(keepends=True):
            if line.endswith("\n"):
                lane, n, revision = line.split()
                acknowledged[lane] = (int(n), int(revision))
        store = await open_store(path)
        found = await store.range("")
        newest = max(at for _, at in acknowledged.values())
        assert newest > last_revision
        assert found.revision >= newest
        for lane, (count, _) in acknowledged.items():
            first, second = await store.get(f"{lane}/a"), await store.get(f"{lane}/b")
            assert first is not None
            assert second is not None
            assert first.value == second.value
            assert int(first.value) >= count
            assert first.mod_revision == second.mod_revision
        last_revision = found.revision
        await store.aclose()


async def test_waiting_transactions_share_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many callers at once cost a few syncs of the disk, not one each."""
    store = await open_store(tmp_path / "metadata.db")
    commits = 0
    original = store._database.commit

    def counting(stage: object) -> None:
        nonlocal commits
        commits += 1
        original(stage)  # type: ignore[arg-type]  # handed through

    monkeypatch.setattr(store._database, "commit", counting)
    results = await asyncio.gather(*(store.txn(then=[Put(f"k{i}", b"")]) for i in range(200)))
    assert sorted(result.revision for result in results) == list(range(2, 202))
    assert commits <= 3
    await store.aclose()


async def test_file_is_synced_fully(tmp_path: Path) -> None:
    """WAL and synchronous=FULL, whatever SQLite was built with."""
    store = await open_store(tmp_path / "metadata.db")

    def modes() -> tuple[object, ...]:
        execute = store._database._connection.execute
        return (
            execute("PRAGMA journal_mode").fetchone()[0],
            execute("PRAGMA synchronous").fetchone()[0],
            execute("PRAGMA user_version").fetchone()[0],
        )

    assert store._thread.submit(modes).result() == ("wal", 2, FORMAT_VERSION)
    await store.aclose()


async def test_failed_commit_changes_nothing(tmp_path: Path) -> None:
    """The disk refuses: the caller hears of it, readers see the old state, and it can go on."""
    path = tmp_path / "metadata.db"
    store = await open_store(path)
    await store.txn(then=[Put("a", b"1")])
    store._thread.submit(store._database._connection.execute, "PRAGMA query_only=1").result()
    with pytest.raises(StoreUnavailableError):
        await store.txn(then=[Put("a", b"2")])
    item = await store.get("a")
    assert item is not None
    assert item.value == b"1"
    store._thread.submit(store._database._connection.execute, "PRAGMA query_only=0").result()
    result = await store.txn([unchanged_since("a", 2)], [Put("a", b"3")])
    assert (result.succeeded, result.revision) == (True, 3)
    await store.aclose()


async def test_file_somebody_else_has_written_is_not_overwritten(tmp_path: Path) -> None:
    """Two writers on one file would undo each other: the second one finds out with its commit."""
    path = tmp_path / "metadata.db"
    one, two = await open_store(path), await open_store(path)
    await one.txn(then=[Put("a", b"1")])
    with pytest.raises(StoreUnavailableError, match="another process"):
        await two.txn(then=[Put("a", b"2")])
    await two.aclose()
    await one.aclose()
    again = await open_store(path)
    item = await again.get("a")
    assert item is not None
    assert item.value == b"1"
    await again.aclose()


async def test_file_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    """It is not touched, and the message says what it is."""
    path = tmp_path / "metadata.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version={FORMAT_VERSION + 1}")
    connection.close()
    with pytest.raises(StoreFormatError, match=f"format {FORMAT_VERSION + 1}"):
        await open_store(path)


async def test_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    """Rather than overwritten."""
    path = tmp_path / "metadata.db"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(StoreFormatError):
        await open_store(path)
    assert path.read_bytes() == b"not a database" * 100


async def test_directory_that_is_not_there_is_reported(tmp_path: Path) -> None:
    """As an expected failure, with the path."""
    with pytest.raises(StoreUnavailableError, match=r"metadata\.db"):
        await open_store(tmp_path / "none" / "metadata.db")


async def test_key_with_any_character_survives(tmp_path: Path) -> None:
    """Group ids become keys, and clients choose them."""
    path = tmp_path / "metadata.db"
    store = await open_store(path)
    keys = sorted(["a/b", "ü", "x\x00y", " ", "\U0001f600"])
    await store.txn(then=[Put(key, key.encode()) for key in keys])
    await store.aclose()
    store = await open_store(path)
    assert [item.key for item in (await store.range("")).items] == keys
    await store.aclose()


class Broken:
    """A connection that commits or not, says it has failed, and cannot be asked for a while."""

    def __init__(self, connection: sqlite3.Connection, *, commits: bool) -> None:
        self.connection = connection
        self.commits = commits
        self.is_dead = False
        self.died = threading.Event()

    @property
    def in_transaction(self) -> bool:
        return self.connection.in_transaction

    def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        if statement == "COMMIT":
            self.is_dead = True
            self.died.set()
            self.connection.execute("COMMIT" if self.commits else "ROLLBACK")
        if self.is_dead:
            raise sqlite3.OperationalError("disk I/O error")
        return self.connection.execute(statement, *arguments)

    def executemany(self, statement: str, rows: Any) -> sqlite3.Cursor:
        return self.connection.executemany(statement, rows)

    def close(self) -> None:
        self.connection.close()


@pytest.mark.parametrize("commits", [True, False])
async def test_a_commit_of_unknown_outcome_is_asked_for_until_it_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits: bool
) -> None:
    """Memory and file stay the same: who waits is told what is true, later changes are made."""
    path = tmp_path / "metadata.db"
    timer = ManualTimer()
    store = await SqliteStore.open(str(path), timer=timer)
    await store.txn(then=[Put("a", b"1")])
    broken = Broken(store._database._connection, commits=commits)
    connect = sqlite3.connect
    store._database._connection = broken  # type: ignore[assignment]  # stands in for it
    refusals = 2

    def unreachable(*arguments: Any, **options: Any) -> sqlite3.Connection:
        nonlocal refusals
        if refusals:
            refusals -= 1
            raise sqlite3.OperationalError("unable to open database file")
        connection: sqlite3.Connection = connect(*arguments, **options)
        return connection

    monkeypatch.setattr(sqlite3, "connect", unreachable)
    change = asyncio.create_task(store.txn(then=[Put("a", b"2")]))
    later = asyncio.create_task(store.txn(then=[Put("b", b"3")]))
    while not change.done():
        timer.advance(ASK_AGAIN_MS)
        await asyncio.sleep(0.01)
    assert refusals == 0
    if commits:
        assert (await change).succeeded
    else:
        with pytest.raises(StoreUnavailableError):
            await change
    # Shared the stage of the first, or came after it.
    await asyncio.wait([later])
    again = await store.txn(then=[Put("c", b"4")])
    assert again.succeeded
    items = {item.key: item.value for item in (await store.range("")).items}
    await store.aclose()
    reopened = await open_store(path)
    assert {item.key: item.value for item in (await reopened.range("")).items} == items
    assert items["a"] == (b"2" if commits else b"1")
    assert reopened.revision == again.revision
    await reopened.aclose()


async def test_a_store_that_cannot_be_asked_can_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits is told that it is not known; the next start finds what is in the file."""
    store = await open_store(tmp_path / "metadata.db")
    broken = Broken(store._database._connection, commits=True)
    store._database._connection = broken  # type: ignore[assignment]  # stands in for it

    def unreachable(*_arguments: Any, **_options: Any) -> sqlite3.Connection:
        raise sqlite3.OperationalError("unable to open database file")

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", unreachable)
        change = asyncio.create_task(store.txn(then=[Put("a", b"2")]))
        await asyncio.to_thread(broken.died.wait, 30)
        closing = asyncio.create_task(store.aclose())
        with pytest.raises(StoreUnavailableError):
            await asyncio.wait_for(change, 30)
        await asyncio.wait_for(closing, 30)
    reopened = await open_store(tmp_path / "metadata.db")
    item = await reopened.get("a")
    assert item is not None
    assert item.value == b"2"
    await reopened.aclose()
