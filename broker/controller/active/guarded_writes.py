"""The transactions of one controller epoch: none is made once the role has gone to another.

    comparison of the `controller` key's create revision ─┐
    WriteSequence: no outcome stays unknown ──────────────┴─> store
                                                   └─> deposed: refused from then on

The create revision of that key is the controller epoch. Only the controller writes topics,
partitions, configs, features and fences, so nothing older can be committed after an election.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from broker.controller.images.controller_history import WRITES_KEY
from broker.controller.images.metadata_records import CONTROLLER_KEY
from broker.controller.store.metadata_store import (
    Compare,
    Get,
    GetResponse,
    MetadataStore,
    Operation,
    Relation,
    StoreFullError,
    StoreUnavailableError,
    Target,
    TxnResult,
)
from broker.controller.store.store_writer import NotControllerError
from broker.controller.store.write_sequence import WriterReplacedError, WriteSequence
from storage.environment.timer import Timer


def in_epoch(controller_epoch: int) -> Compare:
    """True while the controller elected at that revision has not been replaced."""
    return Compare(CONTROLLER_KEY, Target.CREATE_REVISION, Relation.EQUAL, controller_epoch)


def _ignore(_what: str) -> None:
    return


class GuardedWrites:
    """See the module; implements `Transactions` for a `StoreWriter`."""

    def __init__(
        self,
        store: MetadataStore,
        *,
        node_id: int,
        epoch: int,
        timer: Timer,
        on_deposed: Callable[[int], None],
        on_full: Callable[[str], None] = _ignore,
    ) -> None:
        """Write nothing yet.

        Args:
            store: Where to.
            node_id: Of this broker.
            epoch: The controller epoch.
            timer: For waiting while the store is away.
            on_deposed: Called with the epoch, at most once, when the store says that it is over.
            on_full: Called with what the store says where it has no room for a change; with an
                empty text once a change is made, or the epoch is over.
        """
        self._store = store
        self._writer = f"{node_id} {epoch}"
        self.epoch = epoch
        self._timer = timer
        self._on_deposed = on_deposed
        self._on_full = on_full
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._restarts = 0
        self._sequence = self._new_sequence()

    def end(self) -> None:
        """Refuse everything from now on.

        What has begun and has no answer is left alone: it is made in this epoch or not at all, and
        the next controller acts on what it finds.
        """
        if not self._over.done():
            self._over.set_result(None)
            self._on_full("")

    async def txn(
        self,
        compare: Sequence[Compare] = (),
        then: Sequence[Operation] = (),
        otherwise: Sequence[Operation] = (),
    ) -> TxnResult:
        """As `MetadataStore.txn`, but only in this epoch, and never of unknown outcome.

        Raises:
            NotControllerError: The epoch is over; not made.
            StoreError: As `WriteSequence.txn`.
        """
        if self._over.done():
            raise NotControllerError(f"controller epoch {self.epoch} is over")
        try:
            result = await self._until_over(
                self._sequence.txn(
                    [in_epoch(self.epoch), *compare], then, [*otherwise, Get(CONTROLLER_KEY)]
                )
            )
        except WriterReplacedError as error:
            await self._check_epoch(error)
            raise StoreUnavailableError(f"not made: {error}") from error
        except StoreFullError as error:
            self._on_full(str(error))
            raise
        if result.succeeded:
            self._on_full("")
            return result
        last = result.responses[-1]
        assert isinstance(last, GetResponse)
        if not last.items or last.items[0].create_revision != self.epoch:
            self._deposed()
        return TxnResult(False, result.revision, result.responses[:-1])

    async def _until_over(self, txn: Coroutine[Any, Any, TxnResult]) -> TxnResult:
        """Its result; a store that is away is waited for in this epoch only."""
        task = asyncio.ensure_future(txn)
        try:
            await asyncio.wait((task, self._over), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise NotControllerError(f"controller epoch {self.epoch} is over")
            return task.result()
        finally:
            task.cancel()

    async def _check_epoch(self, cause: WriterReplacedError) -> None:
        """Find out which of two it is: deposed, or the last word of the controller before."""
        item = await self._store.get(CONTROLLER_KEY)
        if item is None or item.create_revision != self.epoch:
            self._deposed(cause)
        self._sequence = self._new_sequence()

    def _new_sequence(self) -> WriteSequence:
        self._restarts += 1
        writer = f"{self._writer} {self._restarts}"
        return WriteSequence(self._store, WRITES_KEY, writer, self._timer)

    def _deposed(self, cause: Exception | None = None) -> None:
        if not self._over.done():
            self.end()
            self._on_deposed(self.epoch)
        raise NotControllerError(f"controller epoch {self.epoch} is over") from cause
