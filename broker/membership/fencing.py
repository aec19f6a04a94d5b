"""Fencing by evidence: brokers say in the store which peer is dead; enough of them end its lease.

    evidence ──> suspects/<id>/<me>, under my lease ──> image ──> two brokers name one epoch
                                                                  (all others, if there are fewer)
                                                                    └──> its lease is revoked

A broker with a broken network cannot fence another one alone. The first that sees enough of them
deletes the live key together with what was said, in one transaction, and revokes the lease: a
broker that was fenced wrongly finds both gone, is back with its epoch, and is suspected again after
30 s at the earliest.

Where this broker suspects all others there is no second witness: they have died together, or its
own network refuses everything. Who lives objects, through the store:

    I suspect all others ──1 s──> no one has objected: their leases are revoked
                           └────> suspects/<id>/<id> is there: <id> lives, nothing happens

A process that is dead writes nothing, one that lives sees what is said of it with its next image;
and the transaction that ends a lease this way compares that there is no objection. So it takes a
broken network here and a broker there that has not heard from the store for a second; what that
costs is what any early end of a lease costs.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, NamedTuple

from broker.controller.images.broker_records import (
    decode_live,
    encode_suspicion,
    live_key,
    suspicion_key,
)
from broker.controller.images.cluster_image import BrokerFacts, ClusterImage
from broker.controller.store.metadata_store import (
    Compare,
    Delete,
    LeaseNotFoundError,
    MetadataStore,
    Put,
    StoreError,
    key_absent,
    unchanged_since,
    value_equals,
)
from broker.runtime.pauses import pause
from storage.environment.clock import Clock
from storage.environment.timer import Timer, TimerHandle

LOGGER = logging.getLogger(__name__)

VOTES: Final = 2
"""Brokers that must suspect one, where there are so many others."""

OBJECTION_MS: Final = 1000.0
"""How long all others are suspected by one alone before their leases end: who lives objects."""

OBJECTIONS_MAX: Final = 3
"""Attempts to write an objection, for there may be no other image to come."""

OBJECT_AGAIN_MS: Final = 100.0
"""Between two of them."""

AGAIN_MS: Final = 30_000.0
"""From one suspicion of a life of a broker to the next."""


class _Verdict(NamedTuple):
    """That a broker is dead: who says so, and whether its own word would refute them."""

    votes: list[int]
    unless_objected: bool = False


class Fencing:
    """See the module. Runs on the loop's thread.

    Attributes:
        suspicions: Put so far.
        objections: Put so far: another broker has taken this one for dead.
        revocations: Leases that this broker has ended by evidence.
    """

    def __init__(
        self,
        store: MetadataStore,
        node_id: int,
        *,
        clock: Clock,
        timer: Timer,
        lease: Callable[[], int],
    ) -> None:
        """Suspect no broker yet.

        Args:
            store: Of the cluster.
            node_id: This broker's.
            clock: Monotonic.
            timer: Of the same time.
            lease: This broker's, under which suspicions are put; 0: none now.
        """
        self._store = store
        self._node_id = node_id
        self._clock = clock
        self._timer = timer
        self._lease = lease
        # Epoch and time of the newest suspicion, by node.
        self._suspected: dict[int, tuple[int, float]] = {}
        self._revoking: set[tuple[int, int]] = set()
        self._tasks: set[asyncio.Task[object]] = set()
        self._image = ClusterImage.empty()
        # While all others are suspected by this broker: when that has lasted long enough.
        self._alone: TimerHandle | None = None
        self._is_alone_long = False
        self._objecting = False
        self.suspicions = 0
        self.objections = 0
        self.revocations = 0

    def suspect(self, node_id: int, epoch: int) -> None:
        """Evidence says that this life of a broker is over.

        Nothing is to be said of one that has no lease any more, as after every stop.
        """
        facts = self._image.facts.get(node_id)
        if facts is not None and facts.epoch == epoch and facts.live is None:
            return
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
        if self._suspected.get(node_id, (-1, 0.0))[0] == epoch:
            LOGGER.info("broker suspected no more node=%d epoch=%d", node_id, epoch)
        self._start(self._write(Delete(suspicion_key(node_id, self._node_id))))

    def image_changed(self, image: ClusterImage) -> None:
        """Count what all brokers say, and end the lease of who is dead."""
        self._image = image
        self._object(image)
        if not self._suspects_all(image):
            self._be_with_others()
        elif self._alone is None:
            self._alone = self._timer.call_later_ms(OBJECTION_MS, self._been_alone)
        for node_id, facts in image.facts.items():
            if not facts.suspected_by or facts.live is None or facts.registration is None:
                continue
            key = (node_id, facts.epoch)
            verdict = self._verdict(node_id, facts, image)
            if verdict is not None and key not in self._revoking:
                self._revoking.add(key)
                self._start(self._revoke(node_id, facts, verdict))

    def _verdict(self, node_id: int, facts: BrokerFacts, image: ClusterImage) -> _Verdict | None:
        """Who says that it is dead; None: too few, or this broker has no part in it."""
        others = _members(image) - {node_id}
        votes = [by for by, epoch in facts.suspected_by if by in others and epoch == facts.epoch]
        # The word of one that is no member itself counts for nothing.
        if self._node_id not in others:
            return None
        if len(votes) >= min(VOTES, len(others)):
            return _Verdict(votes)
        if self._is_alone_long and self._node_id in votes:
            return _Verdict(votes, unless_objected=True)
        return None

    def _suspects_all(self, image: ClusterImage) -> bool:
        """Whether this broker is a member, and takes all others for dead: two, or more."""
        members = _members(image)
        others = members - {self._node_id}
        return len(others) < len(members) > VOTES and all(
            _says(image.facts[node], self._node_id) and not _says(image.facts[node], node)
            for node in others
        )

    def _been_alone(self) -> None:
        self._is_alone_long = True
        self.image_changed(self._image)

    def _be_with_others(self) -> None:
        self._is_alone_long = False
        if self._alone is not None:
            self._alone.cancel()
            self._alone = None

    def _object(self, image: ClusterImage) -> None:
        """Say that this broker lives, for as long as another takes it for dead."""
        me = image.facts.get(self._node_id)
        if me is None or self._objecting or not self._lease():
            return
        is_suspected = any(
            by != self._node_id for by, epoch in me.suspected_by if epoch == me.epoch
        )
        if is_suspected == _says(me, self._node_id):
            return
        key = suspicion_key(self._node_id, self._node_id)
        operation: Put | Delete = Delete(key)
        if is_suspected:
            self.objections += 1
            operation = Put(key, encode_suspicion(me.epoch), self._lease())
        self._objecting = True
        self._start(self._write_objection(operation))

    async def _write_objection(self, operation: Put | Delete) -> None:
        for attempt in range(OBJECTIONS_MAX):
            if attempt:
                await pause(self._timer, OBJECT_AGAIN_MS)
            if await self._write(operation):
                break
        self._objecting = False

    async def _revoke(self, node_id: int, facts: BrokerFacts, verdict: _Verdict) -> None:
        try:
            if await self._end_life(node_id, facts, verdict):
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

    async def _end_life(self, node_id: int, facts: BrokerFacts, verdict: _Verdict) -> bool:
        """Delete the live key with all suspicions; False: it is gone, or another's."""
        key = live_key(node_id)
        item = await self._store.get(key)
        assert facts.registration is not None
        if item is None or decode_live(key, item.value) != facts.registration.incarnation:
            return False
        said = encode_suspicion(facts.epoch)
        silent: tuple[Compare, ...] = ()
        if verdict.unless_objected:
            silent = (key_absent(suspicion_key(node_id, node_id)),)
        result = await self._store.txn(
            [
                unchanged_since(key, item.mod_revision),
                # It may have been fenced by them already, and be back.
                *(value_equals(suspicion_key(node_id, by), said) for by in verdict.votes),
                *silent,
            ],
            [Delete(key), Delete(suspicion_key(node_id), prefix=True)],
        )
        if result.succeeded:
            # A process that lives after all learns of it by its next renewal, too.
            with suppress(LeaseNotFoundError):
                await self._store.revoke_lease(item.lease)
        return result.succeeded

    async def _write(self, operation: Put | Delete) -> bool:
        """Write what this broker says; False: it may not be written."""
        try:
            await self._store.txn(then=[operation])
        except StoreError as error:
            LOGGER.warning("suspicion not written key=%s error=%s", operation.key, error)
            return False
        return True

    def _start(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.get_running_loop().create_task(work, name="fencing")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Finish what has begun."""
        self._be_with_others()
        while self._tasks:
            await asyncio.wait(list(self._tasks))


def _members(image: ClusterImage) -> set[int]:
    """Brokers whose word counts."""
    return {
        broker.node_id
        for broker in image.brokers.values()
        if broker.is_live and not broker.is_fenced
    }


def _says(facts: BrokerFacts, by: int) -> bool:
    """Whether a broker has said something of this life of another one, or of its own."""
    return (by, facts.epoch) in facts.suspected_by
