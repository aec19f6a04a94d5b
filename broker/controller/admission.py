"""Admission of registered brokers, while the cluster elects no controller.

The broker with the lowest id of those that live writes `fences/<id>` for all that have registered
and live. It moves nothing, and nobody is fenced again.
"""

import asyncio
import logging

from broker.controller.images.broker_records import encode_fence, fence_key
from broker.controller.images.cluster_image import BrokerImage, ClusterImage
from broker.controller.store.metadata_store import MetadataStore, Put, StoreError

LOGGER = logging.getLogger(__name__)


class Admission:
    """See the module."""

    def __init__(self, store: MetadataStore, node_id: int) -> None:
        self._store = store
        self._node_id = node_id
        self._tasks: set[asyncio.Task[None]] = set()

    def image_changed(self, _: ClusterImage, image: ClusterImage) -> None:
        """Let in who waits, if that is this broker's to do."""
        live = [broker for broker in image.brokers.values() if broker.is_live]
        waiting = [broker for broker in live if broker.is_fenced]
        if waiting and min(broker.node_id for broker in live) == self._node_id:
            task = asyncio.get_running_loop().create_task(self._let_in(waiting), name="admission")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _let_in(self, waiting: list[BrokerImage]) -> None:
        try:
            await self._store.txn(
                then=[
                    Put(fence_key(broker.node_id), encode_fence(broker.epoch)) for broker in waiting
                ]
            )
        except StoreError as error:
            LOGGER.warning("brokers not let in error=%s", error)

    async def aclose(self) -> None:
        """Finish what has begun."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))
