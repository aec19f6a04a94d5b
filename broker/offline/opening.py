"""Opening of what commands work on: a stopped node's directories, and a cluster's store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from broker.controller.store.metadata_store import MetadataStore
from broker.node.cluster_store import access_of
from broker.runtime.startup_errors import StartupError
from config.broker import BrokerConfig
from storage.environment.local_filesystem import LocalFilesystem

if TYPE_CHECKING:
    from broker.controller.store.etcd.etcd_store import EtcdStore


@asynccontextmanager
async def cluster_store(settings: BrokerConfig) -> AsyncIterator[MetadataStore]:
    """The store that `metadata.store` names; it must answer now.

    Raises:
        StartupError: What it takes is not installed, or a file cannot be read.
        StoreError: No server answers, or it refuses.
    """
    store = await _open(settings)
    try:
        yield store
    finally:
        await store.aclose()


async def _open(settings: BrokerConfig) -> "EtcdStore":
    try:
        from broker.controller.store.etcd.etcd_store import EtcdStore
    except ImportError as error:
        raise StartupError(
            f"{settings.metadata_store} needs what the extra `cluster` installs: "
            "pip install 'varve[cluster]'"
        ) from error
    access = access_of(settings, LocalFilesystem())
    return await EtcdStore.open(access, prefix=settings.metadata_store_prefix)
