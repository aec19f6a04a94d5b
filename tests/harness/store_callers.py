"""What callers of a metadata store do whose server fails: they write again, and follow a watch."""

import asyncio
import contextlib
from typing import Final

from broker.controller.store.metadata_store import (
    MetadataStore,
    Put,
    StoreUnavailableError,
    Watch,
    key_absent,
)

WITHIN_S: Final = 60.0


async def write(store: MetadataStore, key: str, value: bytes = b"x") -> int:
    """As a caller does that may repeat: it compares first, and reads after an unknown outcome."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                result = await store.txn([key_absent(key)], [Put(key, value)])
                if result.succeeded:
                    return result.revision
            except StoreUnavailableError:
                await asyncio.sleep(0.02)
            with contextlib.suppress(StoreUnavailableError):
                item = await store.get(key)
                if item is not None:
                    return item.mod_revision


async def follow(watch: Watch, last: str) -> list[str]:
    """Keys in the order in which the watch delivers them, up to `last`."""
    keys: list[str] = []
    async with asyncio.timeout(WITHIN_S):
        async for changes in watch:
            keys.extend(event.key for event in changes.events)
            if last in keys:
                break
    return keys
