"""Transactions of one writer in a sequence, so that the outcome of each becomes known.

Each transaction also compares and puts a key of the writer's own. One whose answer was lost may be
made now, later or never; a second transaction on the same key settles it:

    sent ──> answered
      └────> unknown ──> settle: the key is unchanged  ──> put: the first can no longer be made
                                 the key has its token ──> the first was made, at that revision
                                 another's token       ──> another writer has taken over

So a change is never sent twice, and never reported as failed while it may still come to pass. Costs
one comparison and two operations of a transaction's 128.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from broker.controller.store.metadata_store import (
    Compare,
    Get,
    GetResponse,
    KeyValue,
    MetadataStore,
    Operation,
    OutcomeUnknownError,
    Put,
    StoreError,
    StoreUnavailableError,
    TxnResult,
    unchanged_since,
)
from storage.environment.timer import Timer

LOGGER = logging.getLogger(__name__)

SETTLE_AGAIN_MS: Final = 100.0
"""Between two attempts to find out what became of a transaction."""


class WriterReplacedError(StoreError):
    """Another writer has put the sequence's key: nothing of this transaction was done."""


@dataclass(frozen=True, slots=True)
class _Settled:
    made: bool
    revision: int


class WriteSequence:
    """The transactions of one writer; one at a time.

    Args:
        store: Where to.
        key: The writer's own; a role that moves (the controller) keeps it.
        writer: This life of the writer: no other one's, ever.
        timer: For waiting while the store is away.
    """

    def __init__(self, store: MetadataStore, key: str, writer: str, timer: Timer) -> None:
        self._store = store
        self._key = key
        self._writer = writer
        self._timer = timer
        self._lock = asyncio.Lock()
        self._known: int | None = None
        self._count = 0

    async def txn(
        self,
        compare: Sequence[Compare] = (),
        then: Sequence[Operation] = (),
        otherwise: Sequence[Operation] = (),
    ) -> TxnResult:
        """As `MetadataStore.txn`, but never of unknown outcome.

        Waits for the store as long as it is away after a transaction that it may have made.
        A transaction that turns out to have been made has no `responses`.

        Raises:
            WriterReplacedError: Another writer has taken over; not made.
            StoreUnavailableError: Not made.
            StoreError: As `MetadataStore.txn`.
        """
        async with self._lock:
            known = await self._begin()
            token = self._token()
            try:
                result = await self._store.txn(
                    [*compare, unchanged_since(self._key, known)],
                    [*then, Put(self._key, token)],
                    [*otherwise, Get(self._key)],
                )
            except OutcomeUnknownError as error:
                LOGGER.warning(
                    "metadata store: outcome of a transaction is unknown, settling it error=%s",
                    error,
                )
                return await self._find_out(known, token, error)
            if result.succeeded:
                self._known = result.revision
            elif _revision_of(result) != known:
                raise WriterReplacedError(f"{self._key} was written by another")
            return TxnResult(result.succeeded, result.revision, result.responses[:-1])

    async def _begin(self) -> int:
        if self._known is None:
            item = await self._store.get(self._key)
            self._known = item.mod_revision if item else 0
        return self._known

    def _token(self) -> bytes:
        self._count += 1
        return f"{self._writer} {self._count}".encode()

    async def _find_out(self, known: int, token: bytes, error: StoreError) -> TxnResult:
        # A caller that gives up leaves the sequence unsettled: the next one begins with that.
        self._known = None
        settled = await self._settle(known, token)
        if not settled.made:
            raise StoreUnavailableError(f"not made: {error}") from error
        return TxnResult(True, settled.revision, ())

    async def _settle(self, known: int, token: bytes) -> _Settled:
        tokens: set[bytes] = set()
        while True:
            settling = self._token()
            tokens.add(settling)
            try:
                result = await self._store.txn(
                    [unchanged_since(self._key, known)],
                    [Put(self._key, settling)],
                    [Get(self._key)],
                )
            except StoreUnavailableError:
                await self._pause()
                continue
            if result.succeeded:
                self._known = result.revision
                return _Settled(False, result.revision)
            item = _item_of(result)
            if item is None or item.value not in {token, *tokens}:
                raise WriterReplacedError(f"{self._key} was written by another")
            self._known = item.mod_revision
            return _Settled(item.value == token, item.mod_revision)

    async def _pause(self) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def end() -> None:
            if not over.done():
                over.set_result(None)

        handle = self._timer.call_later_ms(SETTLE_AGAIN_MS, end)
        try:
            await over
        finally:
            handle.cancel()


def _item_of(result: TxnResult) -> KeyValue | None:
    last = result.responses[-1]
    assert isinstance(last, GetResponse)
    return last.items[0] if last.items else None


def _revision_of(result: TxnResult) -> int:
    item = _item_of(result)
    return item.mod_revision if item else 0
