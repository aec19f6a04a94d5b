"""The way of a change of the cluster's state: one at a time, committed, shown, then answered.

    change ──> turn (one at a time) ──> plan on the image ──> commit ──> image of that revision
                     │                                          │
                     │                          refused where this broker is not the controller,
                     │                          or was elected again after the turn began
                     └── the image has what the turns before have committed, or nothing is committed

A plan is good for the image that it was made on, and that only while no other caller commits: one
that was made before another controller had its time would give leader epochs out again. So would
one on an image that lacks the last commit, if the store could not be read behind that.

A change that has begun is finished even when its client has gone.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from broker.controller.image_feed import ImageFeed
from broker.controller.store.metadata_store import StoreError
from broker.controller.store.store_writer import (
    NotControllerError,
    StoreWriter,
    Transactions,
    Unit,
)
from broker.runtime.errors import ApiError

LOGGER = logging.getLogger(__name__)

_T = TypeVar("_T")


class Changes:
    """See the module. Runs on the loop's thread.

    Without transactions to commit with, this broker is not the controller: all is refused.
    """

    def __init__(self, feed: ImageFeed, transactions: Transactions | None) -> None:
        self._feed = feed
        self._writer: StoreWriter | None = None
        self._turn = asyncio.Lock()
        # With what the change that has its turn may commit: of the time when it began.
        self._writer_of_turn: StoreWriter | None = None
        # The newest revision of this broker's own commits; why the image lacks it, if it does.
        self._committed = 0
        self._is_behind: StoreError | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        if transactions is not None:
            self.begin(transactions)

    @property
    def is_controller(self) -> bool:
        """Whether this broker may change the cluster's state now."""
        return self._writer is not None

    def begin(self, transactions: Transactions) -> None:
        """This broker is the controller; it commits with `transactions`."""
        self._writer = StoreWriter(transactions)

    def resign(self) -> None:
        """This broker is no longer the controller."""
        self._writer = None

    async def run(self, change: Coroutine[Any, Any, _T]) -> _T:
        """Carry out one change when all before it are done, also when the caller goes away."""

        async def in_turn() -> _T:
            try:
                async with self._turn:
                    await self._begin_turn()
                    return await change
            finally:
                # Ended before its turn it has not begun, and never will.
                change.close()

        task = self.start(in_turn())
        # So has one that was cancelled before it could wait for its turn.
        task.add_done_callback(lambda _task: change.close())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # The shield no longer looks at what becomes of it.
            task.add_done_callback(_report)
            raise

    async def _begin_turn(self) -> None:
        """Have the image show what the turns before have committed, or nothing be committed."""
        self._is_behind = None
        try:
            await self._feed.see(self._committed)
        except StoreError as error:
            self._is_behind = error
        self._writer_of_turn = self._writer

    def start(self, coroutine: Coroutine[Any, Any, _T]) -> "asyncio.Task[_T]":
        """Run something that `aclose` waits for."""
        task = asyncio.get_running_loop().create_task(coroutine, name="controller change")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def start_unawaited(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run something that only `aclose` waits for."""
        task = self.start(coroutine)
        task.add_done_callback(_report)

    async def commit(
        self, units: Sequence[Unit], *, until_applied: bool = True
    ) -> list[StoreError | None]:
        """Commit what can be committed; the image has it afterwards. In a turn: see `run`.

        Args:
            units: What to.
            until_applied: Wait also for what listeners make of the image (logs, on this broker).

        Returns:
            One error or None per unit.

        Raises:
            StoreError: It is committed, as far as it can be, and the image cannot be had.
        """
        if not units:
            return []
        if self._writer is None or self._writer is not self._writer_of_turn:
            return [NotControllerError("this broker is not the active controller")] * len(units)
        if self._is_behind is not None:
            return [self._is_behind] * len(units)
        outcome = await self._writer.commit(units)
        if outcome.revision:
            self._committed = outcome.revision
            if until_applied:
                await self._feed.reach(outcome.revision)
            else:
                await self._feed.see(outcome.revision)
        return outcome.errors

    async def aclose(self) -> None:
        """Finish what has begun."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))


def _report(task: "asyncio.Task[Any]") -> None:
    """Log what went wrong; a refusal is for the client, and that one has gone."""
    if task.cancelled() or (error := task.exception()) is None:
        return
    if not isinstance(error, ApiError):
        LOGGER.error("controller change failed", exc_info=error)
