"""Producer ids: never the same one twice, whatever happens to the process.

    metadata store: next = 3000          durable: 0 .. 2999 have been given away as blocks
    this broker:    block 2000 .. 2999   handed out one by one; a crash loses what is left

A block is taken by compare-and-set before its first id is used, so two brokers never get the same
one, and an id is handed out at most once even when the answer to its client is lost.

Source: KIP-730; Kafka, RPCProducerIdManager.java, ProducerIdsBlock.java.
"""

import asyncio
from typing import Final

from broker.controller.images.metadata_records import (
    PRODUCER_IDS_KEY,
    decode_next_producer_id,
    encode_next_producer_id,
)
from broker.controller.store.metadata_store import MetadataStore, Put, unchanged_since
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode

PRODUCER_ID_BLOCK_SIZE: Final = 1000
"""Ids in one block, as in Kafka."""

PRODUCER_ID_END: Final = 2**63 - 1
"""First id that is never given: ids are signed 64-bit numbers."""

PREFETCH_REMAINING: Final = PRODUCER_ID_BLOCK_SIZE // 10
"""The next block is fetched when this many ids are left."""

WAITERS_MAX: Final = 10_000
"""Clients that may wait for a block at a time; one more gets a retriable error."""


class ProducerIdBlocks:
    """Takes blocks from the store."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    async def allocate(self, count: int) -> range:
        """A block of `count` producer ids that is never given out again.

        Raises:
            ApiError: UNKNOWN_SERVER_ERROR when the ids are used up.
            StoreError: The store could not commit; ids may be lost, never given twice.
        """
        if count <= 0:
            raise ValueError(f"a block of {count} producer ids")
        while True:
            item = await self._store.get(PRODUCER_IDS_KEY)
            first = decode_next_producer_id(item.value) if item else 0
            if first + count > PRODUCER_ID_END:
                raise ApiError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"Exhausted all producerIds as the next block's end {first + count} "
                    "exceeds the largest one.",
                )
            result = await self._store.txn(
                compare=[unchanged_since(PRODUCER_IDS_KEY, item.mod_revision if item else 0)],
                then=[Put(PRODUCER_IDS_KEY, encode_next_producer_id(first + count))],
            )
            if result.succeeded:
                return range(first, first + count)


class ProducerIds:
    """Hands out single ids from this broker's block."""

    def __init__(self, blocks: ProducerIdBlocks) -> None:
        self._blocks = blocks
        self._current = range(0)
        self._next = range(0)
        self._fetching: asyncio.Task[None] | None = None
        self._waiting = 0

    def try_next(self) -> int | None:
        """An id, or None when a block has to be fetched first (then await `next`)."""
        if not self._current:
            self._current, self._next = self._next, range(0)
            if not self._current:
                return None
        producer_id = self._current[0]
        self._current = self._current[1:]
        if len(self._current) <= PREFETCH_REMAINING and not self._next:
            _ = self._begin_fetch()
        return producer_id

    def prefetch(self) -> None:
        """Fetch the first block if there is none: producers come, too, while the store is away."""
        if not self._current and not self._next:
            _ = self._begin_fetch()

    async def next(self) -> int:
        """An id; waits for a block when there is none.

        Raises:
            ApiError: COORDINATOR_LOAD_IN_PROGRESS (clients retry) when too many wait, or what
                `ProducerIdBlocks.allocate` raises.
            StoreError: The store could not commit.
        """
        while (producer_id := self.try_next()) is None:
            if self._waiting >= WAITERS_MAX:
                raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            self._waiting += 1
            try:
                # Shielded: one client that goes away must not take the block from the others.
                await asyncio.shield(self._begin_fetch())
            finally:
                self._waiting -= 1
        return producer_id

    async def aclose(self) -> None:
        """Wait for a fetch that is on its way."""
        if self._fetching is not None:
            await asyncio.wait([self._fetching])

    def _begin_fetch(self) -> "asyncio.Future[None]":
        if self._fetching is None:
            self._fetching = asyncio.get_running_loop().create_task(
                self._fetch_block(), name="producer id block"
            )
            self._fetching.add_done_callback(self._fetched)
        return self._fetching

    async def _fetch_block(self) -> None:
        self._next = await self._blocks.allocate(PRODUCER_ID_BLOCK_SIZE)

    def _fetched(self, task: "asyncio.Task[None]") -> None:
        self._fetching = None
        if not task.cancelled():
            # Seen by those who wait; a prefetch that failed is tried again by the next client.
            task.exception()
