"""Opening of what commands work on: a stopped node's directories, and a cluster's store."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from broker.controller.store.metadata_store import MetadataStore
from broker.node.cluster_store import unopened_store
from broker.runtime.timer import TimerWheel
from config.broker import BrokerConfig
from storage.environment.clock import SystemClock
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SystemRandomness

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
    with command_environment() as environment:
        store = await unopened_store(settings, environment, name="command")
        try:
            await store.greet()
            yield store
        finally:
            await store.aclose()
