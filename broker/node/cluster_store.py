"""The metadata store of a cluster, as the settings name it, opened when its servers answer.

connect ──> open
^   └───> no server answers, or too late: waited for, and said so (`/readyz`)
└─ 500 ms ─┘
└───> refuses us, too old, or not the store it was: the start is refused
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from broker.controller.store.metadata_store import MetadataStore, StoreUnavailableError
from broker.runtime.pauses import pause
from broker.runtime.startup_errors import StartupError
from storage.environment.environment import Environment
from storage.environment.filesystem import Filesystem
from storage.errors import DiskError

if TYPE_CHECKING:
    from broker.controller.store.etcd.endpoints import EtcdAccess
    from broker.controller.store.etcd.etcd_store import EtcdStore
    from config.broker import BrokerConfig

LOGGER = logging.getLogger(__name__)

TRY_AGAIN_MS: Final = 500.0
"""Before servers that did not answer are asked again."""

LOG_EVERY: Final = 20
"""Attempts between two log lines."""


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
    try:
        from broker.controller.store.etcd.etcd_store import EtcdStore
    except ImportError as error:
        raise StartupError(
            f"metadata.store={settings.metadata_store} needs what the extra `cluster` installs: "
            "pip install 'varve[cluster]'"
        ) from error
    access = await environment.run_blocking(access_of, settings, environment.filesystem)
    store = await EtcdStore.unopened(access, prefix=settings.metadata_store_prefix)
    try:
        await _wait_for(store, str(settings.metadata_store), environment, waiting)
    except BaseException:
        await store.aclose()
        raise
    return store


async def _wait_for(
    store: "EtcdStore", address: str, environment: Environment, waiting: Callable[[str], None]
) -> None:
    waiting(f"connecting to the metadata store {address}")
    attempts = 0
    while True:
        try:
            await store.greet()
        except StoreUnavailableError as error:
            text = f"waiting for the metadata store {address}: {error}"
            waiting(text)
            if attempts % LOG_EVERY == 0:
                LOGGER.warning("%s", text)
            attempts += 1
            await pause(environment.timer, TRY_AGAIN_MS)
        else:
            waiting("")
            return


def access_of(settings: "BrokerConfig", filesystem: Filesystem) -> "EtcdAccess":
    """Servers, user and certificates, read from the files that the settings name.

    Raises:
        StartupError: A file cannot be read.
    """
    from broker.controller.store.etcd.endpoints import EtcdAccess, TlsFiles

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
        tls = TlsFiles(
            read("metadata.store.tls.ca.file", settings.metadata_store_tls_ca_file),
            read("metadata.store.tls.key.file", settings.metadata_store_tls_key_file),
            read(
                "metadata.store.tls.certificate.file",
                settings.metadata_store_tls_certificate_file,
            ),
        )
    password = read("metadata.store.password.file", settings.metadata_store_password_file) or b""
    return EtcdAccess(
        tuple(map(str, store.endpoints)),
        tls,
        settings.metadata_store_username or "",
        password.partition(b"\n")[0].decode().rstrip("\r"),
    )
