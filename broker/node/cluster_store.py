"""The metadata store of a cluster, as the settings name it, opened when it answers.

connect ──> no server answers, or too late: waited for, and said so (`/readyz`)
        ──> open
        ──> refuses us, too old, or not the store it was: the start is refused
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from broker.controller.images.controller_history import WRITES_KEY
from broker.controller.store.metadata_store import MetadataStore
from broker.controller.store.until_answered import until_answered
from broker.runtime.startup_errors import StartupError
from storage.environment.environment import Environment
from storage.environment.filesystem import Filesystem
from storage.errors import DiskError

if TYPE_CHECKING:
    from broker.controller.store.etcd.access import EtcdAccess
    from broker.controller.store.etcd.etcd_store import EtcdStore
    from broker.controller.store.unix.unix_store import UnixStore
    from config.broker import BrokerConfig

_AUTHORITY: Final = "metadata.store.tls.ca.file"
_KEY: Final = "metadata.store.tls.key.file"
_CERTIFICATE: Final = "metadata.store.tls.certificate.file"
_PASSWORD: Final = "metadata.store.password.file"


async def open_cluster_store(
    settings: "BrokerConfig",
    environment: Environment,
    *,
    waiting: Callable[[str], None],
) -> MetadataStore:
    """Open the store that `metadata.store` names, however long that takes.

    Args:
        settings: Of the broker; `metadata.store` is not `sqlite`.
        environment: Timer and disk.
        waiting: Called with what is waited for; empty: nothing any more.

    Raises:
        StartupError: What it takes is not installed, or a file cannot be read.
        StoreError: The store refuses, or is not the one it was.
    """
    store = await unopened_store(settings, environment, name=f"node {settings.node_id}")
    try:
        address = f"the metadata store {settings.metadata_store}"
        waiting(f"connecting to {address}")
        await until_answered(store.greet, environment.timer, what=address, waiting=waiting)
    except BaseException:
        await store.aclose()
        raise
    return store


async def unopened_store(
    settings: "BrokerConfig", environment: Environment, *, name: str
) -> "EtcdStore | UnixStore":
    """The store that `metadata.store` names; its `greet` opens it.

    Only what this kind of store takes is imported.

    Args:
        settings: `metadata.store` is not `sqlite`.
        environment: Disk and threads.
        name: Of this client, for the log of a server on this machine.

    Raises:
        StartupError: What it takes is not installed, or a file cannot be read.
    """
    if settings.metadata_store.socket:
        from broker.controller.store.unix.unix_store import UnixStore

        return await UnixStore.unopened(settings.metadata_store.socket, name=name)
    # What gRPC writes to standard error, line by line for each attempt, is in our reasons.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        from broker.controller.store.etcd.etcd_store import EtcdStore
    except ImportError as error:
        raise StartupError(
            f"metadata.store={settings.metadata_store} needs what the extra `cluster` installs: "
            "pip install 'varve[cluster]'"
        ) from error
    loop = asyncio.get_running_loop()

    def read_files() -> Coroutine[Any, Any, "EtcdAccess"]:
        return environment.run_blocking(access_of, settings, environment.filesystem)

    async def read_again() -> "EtcdAccess":
        # Files are read by threads of this loop, whatever thread the store has.
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(read_files(), loop))

    return await EtcdStore.unopened(
        await read_files(),
        prefix=settings.metadata_store_prefix,
        witness=WRITES_KEY,
        read_access=read_again if _has_files(settings) else None,
    )


def _has_files(settings: "BrokerConfig") -> bool:
    return any(
        path is not None
        for path in (
            settings.metadata_store_password_file,
            settings.metadata_store_tls_ca_file,
            settings.metadata_store_tls_key_file,
            settings.metadata_store_tls_certificate_file,
        )
    )


def access_of(settings: "BrokerConfig", filesystem: Filesystem) -> "EtcdAccess":
    """Servers, user and certificates, read from the files that the settings name.

    Raises:
        StartupError: A file cannot be read, or does not hold what it should.
    """
    from broker.controller.store.etcd.access import EtcdAccess, TlsFiles

    def read(key: str, path: str | None) -> bytes | None:
        if path is None:
            return None
        try:
            return filesystem.read_bytes(path)
        except DiskError as error:
            raise StartupError(f"{key}: {error}") from error

    store = settings.metadata_store
    tls = None
    if store.with_tls:
        # Imported where there are certificates alone.
        from broker.node.tls_files import check_authority, check_certificate

        authority = read(_AUTHORITY, settings.metadata_store_tls_ca_file)
        key = read(_KEY, settings.metadata_store_tls_key_file)
        certificate = read(_CERTIFICATE, settings.metadata_store_tls_certificate_file)
        if authority is not None:
            check_authority(authority, f"{_AUTHORITY}: {settings.metadata_store_tls_ca_file}")
        if key is not None and certificate is not None:
            check_certificate(
                key,
                certificate,
                f"{_KEY}: {settings.metadata_store_tls_key_file}",
                f"{_CERTIFICATE}: {settings.metadata_store_tls_certificate_file}",
            )
        tls = TlsFiles(authority, key, certificate)
    line = (read(_PASSWORD, settings.metadata_store_password_file) or b"").partition(b"\n")[0]
    try:
        password = line.decode().rstrip("\r")
    except UnicodeDecodeError as error:
        raise StartupError(
            f"{_PASSWORD}: the first line of {settings.metadata_store_password_file} is not UTF-8"
        ) from error
    return EtcdAccess(
        tuple(map(str, store.endpoints)), tls, settings.metadata_store_username or "", password
    )
