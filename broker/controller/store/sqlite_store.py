"""The metadata store of a single node: one SQLite file.

Tables (user_version 1):

    keys    key BLOB primary key (UTF-8), value BLOB, create_revision, mod_revision, version, lease
    leases  id primary key, ttl_ms
    state   name primary key, value: `revision`, `last_lease`; where other processes are served,
            `identity`

WAL with synchronous=FULL: a transaction is on disk when it is answered, and a process that dies at
any moment leaves the last answered state, or one a little newer. One thread writes; everything is
read from memory, which holds all of it. Any `sqlite3` tool can look at the file while we run, none
may write to it: the revision is checked with every commit.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from typing_extensions import override

from broker.controller.store.keyspace import FIRST_REVISION, Keyspace, Stage
from broker.controller.store.local_store import LocalStore
from broker.controller.store.metadata_store import (
    KeyValue,
    OutcomeUnknownError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from broker.runtime.timer import Timer

if TYPE_CHECKING:
    from storage.environment.clock import Clock

FORMAT_VERSION: Final = 1
"""Layout of the tables, in SQLite's user_version; 0 is a new file."""

_SCHEMA = """
CREATE TABLE keys (
    key BLOB PRIMARY KEY,
    value BLOB NOT NULL,
    create_revision INTEGER NOT NULL,
    mod_revision INTEGER NOT NULL,
    version INTEGER NOT NULL,
    lease INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE leases (id INTEGER PRIMARY KEY, ttl_ms INTEGER NOT NULL);
CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""


LOGGER = logging.getLogger(__name__)

PRIMARY_CODE: Final = 0xFF
"""The part of an SQLite error code without its details."""

ASK_AGAIN_MS: Final = 1_000.0
"""Between two questions after a commit whose outcome is not known."""

CLOSED_CHECK_S: Final = 0.1
"""How soon a store that is being closed stops asking."""


def _wake(waiting: "asyncio.Future[None]") -> None:
    if not waiting.done():
        waiting.set_result(None)


class StoreFormatError(StoreError):
    """The file is not a metadata store, or one of a newer release."""


class _Database:
    """The connection; lives in the writer thread from birth to close."""

    def __init__(self, path: str, *, create: bool) -> None:
        self._path = path
        self._connection = sqlite3.connect(path, isolation_level=None)
        try:
            self._prepare(path, create=create)
        except sqlite3.OperationalError:
            # Locked, read-only, out of space: the file may be fine.
            self._connection.close()
            raise
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise StoreFormatError(f"{path} cannot be used as metadata store: {error}") from error
        except StoreError:
            self._connection.close()
            raise

    def _prepare(self, path: str, *, create: bool) -> None:
        execute = self._connection.execute
        execute("PRAGMA journal_mode=WAL")
        execute("PRAGMA synchronous=FULL")
        (version,) = execute("PRAGMA user_version").fetchone()
        if version == 0 and not create:
            raise StoreFormatError(f"metadata store {path} is empty: restore it from a copy")
        if version == 0:
            execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA.split(";"):
                execute(statement)
            execute(
                "INSERT INTO state VALUES ('revision', ?), ('last_lease', 0)", (FIRST_REVISION,)
            )
            execute(f"PRAGMA user_version={FORMAT_VERSION}")
            execute("COMMIT")
        elif version != FORMAT_VERSION:
            raise StoreFormatError(
                f"metadata store of format {version}, this release reads {FORMAT_VERSION}"
            )
        else:
            self._require_writable(path)

    def _require_writable(self, path: str) -> None:
        """Refuse a file that this process may only read: SQLite opens it without a word.

        Raises:
            StoreUnavailableError: It may not be written.
        """
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            # All else, as a full disk, may pass while the broker runs.
            if error.sqlite_errorcode & PRIMARY_CODE == sqlite3.SQLITE_READONLY:
                raise StoreUnavailableError(
                    f"the metadata store cannot be written: {path}: {error}. Give the user that "
                    "runs the broker the right to write it, its directory, and the files beside "
                    "it that begin with its name"
                ) from error

    def identity(self, fresh: int) -> int:
        """The number that names this store; `fresh` from now on, if it has none."""
        execute = self._connection.execute
        try:
            execute("INSERT OR IGNORE INTO state VALUES ('identity', ?)", (fresh,))
            (found,) = execute("SELECT value FROM state WHERE name = 'identity'").fetchone()
        except sqlite3.Error as error:
            raise StoreUnavailableError(f"SQLite: {error}") from error
        return int(found)

    def load_into(self, keyspace: Keyspace) -> None:
        execute = self._connection.execute
        state = dict(execute("SELECT name, value FROM state").fetchall())
        rows = execute(
            "SELECT key, value, create_revision, mod_revision, version, lease FROM keys"
        ).fetchall()
        keyspace.load(
            (KeyValue(bytes(row[0]).decode(), bytes(row[1]), *row[2:]) for row in rows),
            execute("SELECT id, ttl_ms FROM leases").fetchall(),
            revision=state["revision"],
            last_lease=state["last_lease"],
        )

    def commit(self, stage: Stage) -> None:
        """Write `stage` in one transaction.

        Raises:
            OutcomeUnknownError: It may have been written: see `is_committed`.
            StoreUnavailableError: Nothing was written, or the file is not what we left.
        """
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._write(stage)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            try:
                self._roll_back()
                # A commit that reports an error may still have reached the disk: look.
                is_committed = self._is_at(stage)
            except StoreUnavailableError as doubt:
                raise OutcomeUnknownError(f"{doubt}, after: {error}") from error
            if not is_committed:
                is_full = error.sqlite_errorcode == sqlite3.SQLITE_FULL
                kind = StoreFullError if is_full else StoreUnavailableError
                raise kind(f"SQLite: {error}") from error
        except StoreUnavailableError:
            self._roll_back()
            raise

    def is_committed(self, stage: Stage) -> bool:
        """Whether a transaction of unknown outcome is in the file, which is opened again.

        Raises:
            StoreUnavailableError: It still cannot be asked.
        """
        try:
            self._connection.close()
            # Never a new file in place of one that is out of reach.
            uri = f"file:{quote(self._path)}?mode=rw"
            self._connection = sqlite3.connect(uri, isolation_level=None, uri=True)
            self._connection.execute("PRAGMA synchronous=FULL")
        except sqlite3.Error as error:
            raise StoreUnavailableError(f"SQLite, opening again: {error}") from error
        return self._is_at(stage)

    def _write(self, stage: Stage) -> None:
        connection = self._connection
        moved = connection.execute(
            "UPDATE state SET value = ? WHERE name = 'revision' AND value = ?",
            (stage.revision, stage.base_revision),
        ).rowcount
        if moved != 1:
            raise StoreUnavailableError("another process has written to the metadata store")
        connection.executemany(
            "DELETE FROM keys WHERE key = ?",
            [(key.encode(),) for key, item in stage.changes.items() if item is None],
        )
        connection.executemany(
            "INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?, ?)",
            [
                (
                    key.encode(),
                    item.value,
                    item.create_revision,
                    item.mod_revision,
                    item.version,
                    item.lease,
                )
                for key, item in stage.changes.items()
                if item is not None
            ],
        )
        if stage.lease_changes:
            connection.execute(
                "UPDATE state SET value = ? WHERE name = 'last_lease'", (stage.last_lease,)
            )
        for lease, ttl_ms in stage.lease_changes.items():
            if ttl_ms is None:
                connection.execute("DELETE FROM leases WHERE id = ?", (lease,))
            else:
                connection.execute("INSERT INTO leases VALUES (?, ?)", (lease, ttl_ms))

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise StoreUnavailableError(f"SQLite, rolling back: {error}") from error

    def _is_at(self, stage: Stage) -> bool:
        if stage.revision == stage.base_revision:
            return False
        try:
            row = self._connection.execute(
                "SELECT value FROM state WHERE name = 'revision'"
            ).fetchone()
        except sqlite3.Error as error:
            raise StoreUnavailableError(f"SQLite, after a failed commit: {error}") from error
        return bool(row[0] == stage.revision)

    def close(self) -> None:
        self._connection.close()


def read_keys(path: str, prefix: str) -> list[str]:
    """Keys of a store that is not open, for messages to operators; empty if it cannot be read."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute(
                "SELECT key FROM keys WHERE substr(key, 1, ?) = ?",
                (len(prefix.encode()), prefix.encode()),
            ).fetchall()
    except sqlite3.Error:
        return []
    return [bytes(row[0]).decode() for row in rows]


class SqliteStore(LocalStore):
    """A `MetadataStore` in one SQLite file; opened with `SqliteStore.open`, closed by its owner."""

    def __init__(
        self,
        keyspace: Keyspace,
        timer: Timer,
        database: _Database,
        thread: ThreadPoolExecutor,
        clock: "Clock | None" = None,
    ) -> None:
        super().__init__(keyspace, timer, clock)
        self._database = database
        self._thread = thread
        # Called each time that a change found no room on the disk.
        self.on_full: Callable[[str], None] = lambda _reason: None

    @classmethod
    async def open(
        cls, path: str, *, timer: Timer, create: bool = True, clock: "Clock | None" = None
    ) -> "SqliteStore":
        """Open or create the file and read all of it.

        Args:
            path: The file.
            timer: For leases.
            create: Make a new store where there is none, or only an empty file.
            clock: With it no lease ends because this process stood still; see `LocalStore`.

        Raises:
            StoreFormatError: Not a metadata store, one of a newer release, or none and not
                `create`.
            StoreUnavailableError: The file cannot be opened.
        """
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metadata-store")
        keyspace = Keyspace()

        def open_and_load() -> _Database:
            try:
                database = _Database(path, create=create)
            except sqlite3.Error as error:
                raise StoreUnavailableError(f"{path}: {error}") from error
            try:
                database.load_into(keyspace)
            except (sqlite3.Error, KeyError, ValueError) as error:
                database.close()
                raise StoreFormatError(f"{path} cannot be read: {error!r}") from error
            return database

        try:
            database = await asyncio.get_running_loop().run_in_executor(thread, open_and_load)
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return cls(keyspace, timer, database, thread, clock)

    async def identity(self, fresh: int) -> int:
        """The number that names this store; `fresh` from now on, if it has none.

        Raises:
            StoreUnavailableError: The file refuses.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._database.identity, fresh)

    @override
    async def _persist(self, stage: Stage) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._database.commit, stage)
        except StoreFullError as error:
            self.on_full(str(error))
            raise
        except OutcomeUnknownError as error:
            LOGGER.error(
                "metadata store: outcome of a commit is unknown, reading it back error=%s", error
            )
            if not await self._ask(stage):
                raise StoreUnavailableError(str(error)) from error

    async def _ask(self, stage: Stage) -> bool:
        """Whether `stage` is in the file, asked until there is an answer.

        Till then no call is answered, and nothing else is written: memory must not fall behind the
        file, nor be ahead of it.

        Raises:
            StoreUnavailableError: The store is being closed.
        """
        loop = asyncio.get_running_loop()
        while True:
            due: asyncio.Future[None] = loop.create_future()
            handle = self._timer.call_later_ms(ASK_AGAIN_MS, partial(_wake, due))
            try:
                while not due.done() and not self._closed:
                    await asyncio.wait([due], timeout=CLOSED_CHECK_S)
            finally:
                handle.cancel()
            try:
                return await loop.run_in_executor(self._thread, self._database.is_committed, stage)
            except StoreUnavailableError as error:
                if self._closed:
                    raise
                LOGGER.error("metadata store: still unavailable error=%s", error)

    @override
    async def aclose(self) -> None:
        """Carry out what waits, fold the WAL into the file, close it."""
        if self._closed:
            return
        await super().aclose()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._database.close)
        self._thread.shutdown(wait=False)
