"""Fencing by evidence: brokers say in the store which peer is dead; enough of them end its lease.

    evidence ──> suspects/<id>/<me>, under my lease ──> image ──> two brokers name one epoch
                                                                  (all others, if there are fewer)
                                                                    └──> its lease is revoked

A broker with a broken network cannot fence another one alone. The first that sees enough of them
deletes the live key together with what was said, in one transaction, and revokes the lease: a
broker that was fenced wrongly finds both gone, is back with its epoch, and is suspected again after
30 s at the earliest.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from broker.controller.images.broker_records import (
    decode_live,
    encode_suspicion,
    live_key,
    suspicion_key,
)
from broker.controller.images.cluster_image import BrokerFacts, ClusterImage
from broker.controller.store.metadata_store import (
    Delete,
    LeaseNotFoundError,
    MetadataStore,
    Put,
    StoreError,
    unchanged_since,
    value_equals,
)
from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

VOTES: Final = 2
"""Brokers that must suspect one, where there are so many others."""

AGAIN_MS: Final = 30_000.0
"""From one suspicion of a life of a broker to the next."""


class Fencing:
    """See the module. Runs on the loop's thread.

    Attributes:
        suspicions: Put so far.
        revocations: Leases that this broker has ended by evidence.
    """

    def __init__(
        self, store: MetadataStore, node_id: int, clock: Clock, *, lease: Callable[[], int]
    ) -> None:
        """Suspect no broker yet.

        Args:
            store: Of the cluster.
            node_id: This broker's.
            clock: Monotonic.
            lease: This broker's, under which suspicions are put; 0: none now.
        """
        self._store = store
        self._node_id = node_id
        self._clock = clock
        self._lease = lease
        # Epoch and time of the newest suspicion, by node.
        self._suspected: dict[int, tuple[int, float]] = {}
        self._revoking: set[tuple[int, int]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.suspicions = 0
        self.revocations = 0

    def suspect(self, node_id: int, epoch: int) -> None:
        """Evidence says that this life of a broker is over."""
        now_ms = self._clock.monotonic_ms()
        last_epoch, last_ms = self._suspected.get(node_id, (-1, 0.0))
        if not self._lease() or (epoch == last_epoch and now_ms - last_ms < AGAIN_MS):
            return
        self._suspected[node_id] = (epoch, now_ms)
        self.suspicions += 1
        LOGGER.warning(
            "broker suspected: its connections ended, new ones are refused node=%d epoch=%d",
            node_id,
            epoch,
        )
        key = suspicion_key(node_id, self._node_id)
        self._start(self._write(Put(key, encode_suspicion(epoch), self._lease())))

    def withdraw(self, node_id: int, epoch: int) -> None:
        """It is reached again."""
        LOGGER.info("broker suspected no more node=%d epoch=%d", node_id, epoch)
        self._start(self._write(Delete(suspicion_key(node_id, self._node_id))))

    def image_changed(self, image: ClusterImage) -> None:
        """Count what all brokers say, and end the lease of who is dead."""
        for node_id, facts in image.facts.items():
            if not facts.suspected_by or facts.live is None or facts.registration is None:
                continue
            key = (node_id, facts.epoch)
            votes = self._votes(node_id, facts, image)
            if votes and key not in self._revoking:
                self._revoking.add(key)
                self._start(self._revoke(node_id, facts, votes))

    def _votes(self, node_id: int, facts: BrokerFacts, image: ClusterImage) -> list[int]:
        """Who says that it is dead; empty: too few, or this broker has no part in it."""
        others = {
            broker.node_id
            for broker in image.brokers.values()
            if broker.node_id != node_id and broker.is_live and not broker.is_fenced
        }
        votes = [by for by, epoch in facts.suspected_by if by in others and epoch == facts.epoch]
        # The word of one that is no member itself counts for nothing.
        enough = self._node_id in others and len(votes) >= min(VOTES, len(others))
        return votes if enough else []

    async def _revoke(self, node_id: int, facts: BrokerFacts, votes: list[int]) -> None:
        try:
            if await self._end_life(node_id, facts, votes):
                self.revocations += 1
                LOGGER.warning(
                    "broker fenced by evidence, its lease is revoked node=%d epoch=%d",
                    node_id,
                    facts.epoch,
                )
        except StoreError as error:
            LOGGER.warning("lease not revoked, it ends by itself node=%d error=%s", node_id, error)
        finally:
            self._revoking.discard((node_id, facts.epoch))

    async def _end_life(self, node_id: int, facts: BrokerFacts, votes: list[int]) -> bool:
        """Delete the live key with all suspicions; False: it is gone, or another's."""
        key = live_key(node_id)
        item = await self._store.get(key)
        assert facts.registration is not None
        if item is None or decode_live(key, item.value) != facts.registration.incarnation:
            return False
        said = encode_suspicion(facts.epoch)
        result = await self._store.txn(
            [
                unchanged_since(key, item.mod_revision),
                # It may have been fenced by them already, and be back.
                *(value_equals(suspicion_key(node_id, by), said) for by in votes),
            ],
            [Delete(key), Delete(suspicion_key(node_id), prefix=True)],
        )
        if result.succeeded:
            # A process that lives after all learns of it by its next renewal, too.
            with suppress(LeaseNotFoundError):
                await self._store.revoke_lease(item.lease)
        return result.succeeded

    async def _write(self, operation: Put | Delete) -> None:
        try:
            await self._store.txn(then=[operation])
        except StoreError as error:
            LOGGER.warning("suspicion not written key=%s error=%s", operation.key, error)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name="fencing")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Finish what has begun."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))
