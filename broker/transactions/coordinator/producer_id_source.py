"""Producer ids for transactional ids: at once from the broker's block, or from the next one."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.controller.store.metadata_store import StoreError
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.controller.producer_ids import ProducerIds

logger = logging.getLogger(__name__)

Taken = Callable[[int], None]
Failed = Callable[[ErrorCode], None]


class ProducerIdSource:
    """The source of producer ids for callbacks, which cannot wait themselves."""

    __slots__ = ("_ids", "_tasks")

    def __init__(self, ids: "Callable[[], ProducerIds]") -> None:
        self._ids = ids
        self._tasks: set[asyncio.Task[None]] = set()

    def try_next(self) -> int | None:
        """An id, or None when a block has to be fetched first: then `request` one."""
        return self._ids().try_next()

    def request(self, taken: Taken, failed: Failed) -> None:
        """Call `taken` with an id when there is one, or `failed` with the client's error code."""
        task = asyncio.get_running_loop().create_task(self._wait(taken, failed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wait(self, taken: Taken, failed: Failed) -> None:
        try:
            producer_id = await self._ids().next()
        except ApiError as error:
            failed(error.code)
        except StoreError as error:
            logger.warning("producer ids could not be allocated error=%s", error)
            failed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        else:
            taken(producer_id)

    async def stop(self) -> None:
        """Cancel all requests without an answer."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
