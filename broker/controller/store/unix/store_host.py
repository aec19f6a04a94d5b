"""The metadata store of one machine's brokers, with its file, its lock and its socket.

    directory, mode 0700
    varve-brokers.lock     held by the one process that serves
    varve-brokers.sqlite   the store (`SqliteStore`)
    varve-brokers.id       its identity, written when the store was made
    varve-brokers.sock     mode 0600: who may connect is who owns the directory

    locked ──> store opened ──> identity compared ──> listening ──> closed

Leases live in the store. Those of before a restart get their full time again, and none ends because
this process stood still: who holds it could not renew it. A directory with an identity and without
its store is refused: the store is lost, not new.
"""

import logging
from collections.abc import Callable
from os.path import abspath, join
from typing import Final

from broker.controller.store.metadata_store import StoreError, StoreUnavailableError
from broker.controller.store.sqlite_store import SqliteStore, StoreFormatError
from broker.controller.store.unix import socket_file
from broker.controller.store.unix.store_server import ServerNumbers, StoreServer
from storage.environment.environment import Environment
from storage.environment.filesystem import Filesystem, Lock
from storage.errors import DiskError, LockedDirectoryError

LOGGER = logging.getLogger(__name__)

STORE_FILE: Final = "varve-brokers.sqlite"
LOCK_FILE: Final = "varve-brokers.lock"
IDENTITY_FILE: Final = "varve-brokers.id"
SOCKET_FILE: Final = "varve-brokers.sock"


class StoreHostError(StoreError):
    """The store cannot be served from there; one sentence for the operator."""


class StoreHost:
    """See the module. Opened with `StoreHost.open`, closed by its owner."""

    def __init__(
        self, store: SqliteStore, server: StoreServer, lock: Lock, socket_path: str
    ) -> None:
        self._store = store
        self._server = server
        self._lock = lock
        self._socket_path = socket_path
        self._closed = False

    @classmethod
    async def open(
        cls, directory: str, environment: Environment, *, socket: str = ""
    ) -> "StoreHost":
        """Serve the store in `directory`, which is made where there is none.

        Args:
            directory: Of the store; its parent is there.
            environment: Clock, timer, disk, randomness, threads.
            socket: Path of the socket, in a folder of mode 0700; empty: in `directory`.

        Raises:
            StoreHostError: Another process serves it, other users may enter it, it cannot be read,
                or the store that it had is lost.
        """
        directory, path = _places(directory, socket)
        filesystem = environment.filesystem
        try:
            lock = await environment.run_blocking(_locked, directory, filesystem)
        except LockedDirectoryError as error:
            raise StoreHostError(
                f"the metadata store in {directory} is served by another process already"
            ) from error
        except (OSError, DiskError, StoreError) as error:
            raise StoreHostError(f"the metadata store in {directory}: {error}") from error
        store: SqliteStore | None = None
        try:
            store, identity = await _opened(directory, environment)
            listening = await environment.run_blocking(socket_file.listen, path)
            server = StoreServer(store, identity, environment.timer)
            await server.serve(listening)
        except BaseException as error:
            if store is not None:
                await store.aclose()
            lock.release()
            if isinstance(error, DiskError | StoreError):
                raise StoreHostError(f"the metadata store in {directory}: {error}") from error
            raise
        LOGGER.info(
            "metadata store is served socket=%s revision=%d identity=%x",
            path,
            store.revision,
            identity,
        )
        return cls(store, server, lock, path)

    @property
    def address(self) -> str:
        """What brokers have as `metadata.store`."""
        return f"unix:{self._socket_path}"

    @property
    def revision(self) -> int:
        """The newest of the store."""
        return self._store.revision

    @property
    def leases(self) -> int:
        """Leases that live."""
        return self._store.lease_count

    @property
    def numbers(self) -> ServerNumbers:
        """Of the server."""
        return self._server.numbers

    def call_when_full(self, callback: Callable[[str], None]) -> None:
        """Have `callback` called, with a reason, each time a change finds no room on the disk."""
        self._store.on_full = callback

    async def aclose(self) -> None:
        """End all connections, finish what was begun, close the store, give up the directory."""
        if self._closed:
            return
        self._closed = True
        await self._server.aclose()
        socket_file.remove(self._socket_path)
        await self._store.aclose()
        self._lock.release()


def _places(directory: str, socket: str) -> tuple[str, str]:
    """Absolute paths of the directory and of the socket."""
    directory = abspath(directory)
    return directory, abspath(socket) if socket else join(directory, SOCKET_FILE)


def _locked(directory: str, filesystem: Filesystem) -> Lock:
    socket_file.make_private_folder(directory)
    return filesystem.lock(join(directory, LOCK_FILE))


async def _opened(directory: str, environment: Environment) -> tuple[SqliteStore, int]:
    path, note = join(directory, STORE_FILE), join(directory, IDENTITY_FILE)
    filesystem = environment.filesystem
    named = await environment.run_blocking(_named_identity, filesystem, note)
    if named and not await environment.run_blocking(filesystem.exists, path):
        raise StoreFormatError(
            f"{path} is not there, and {note} says that it was: give it back from a copy, with its "
            "-wal file. If it is lost for good, move this directory away and run `varve cluster "
            "recover-metadata` on the store that is made then"
        )
    store = await SqliteStore.open(
        path, timer=environment.timer, create=not named, clock=environment.clock
    )
    try:
        fresh = int.from_bytes(environment.randomness.token_bytes(7), "big") + 1
        identity = await store.identity(fresh)
        if named and named != identity:
            raise StoreFormatError(
                f"{path} has identity {identity:x}, and {note} says {named:x}: it is another "
                "store's file"
            )
        if not named:
            await environment.run_blocking(
                filesystem.replace_bytes, note, f"{identity:x}\n".encode()
            )
    except BaseException:
        await store.aclose()
        raise
    return store, identity


def _named_identity(filesystem: Filesystem, note: str) -> int:
    """What the note says; 0: there is none."""
    if not filesystem.exists(note):
        return 0
    text = filesystem.read_bytes(note)
    try:
        return int(text.decode().strip(), 16)
    except ValueError:
        raise StoreUnavailableError(f"{note} cannot be read: {text[:40]!r}") from None
