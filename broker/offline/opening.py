"""Opening of what commands work on: a stopped node's directories, and a cluster's store."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from broker.controller.store.metadata_store import MetadataStore
from broker.node.cluster_store import access_of
from broker.runtime.startup_errors import StartupError
from broker.runtime.timer import TimerWheel
from config.broker import BrokerConfig
from storage.environment.clock import SystemClock
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SystemRandomness

if TYPE_CHECKING:
    from broker.controller.store.etcd.etcd_store import EtcdStore

_T = TypeVar("_T")


@contextmanager
def command_environment() -> Iterator[Environment]:
    """The machine's clock, disk and randomness, with a timer on the running loop."""
    clock = SystemClock()
    timer = TimerWheel(asyncio.get_running_loop(), clock)
    try:
        yield Environment(
            clock=clock,
            timer=timer,
            filesystem=LocalFilesystem(),
            randomness=SystemRandomness(),
            run_blocking=_in_thread,
        )
    finally:
        timer.close()


async def _in_thread(function: Callable[..., _T], *args: Any) -> _T:
    return await asyncio.to_thread(function, *args)


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
