"""Election of the controller: one broker at a time, by a key under its lease.

    no `controller` key ──20 ms per broker before us──> create it under our lease, if it is absent
         ^                                                   │
         │                                      image names us, and the lease is ours
    key deleted <──lease ended── elected <───────────────────┘
         │                          │
         └──> resigned <────────────┘  image names another, or none; or a transaction was refused

The key's create revision is the controller epoch; it grows with every election. Being elected is
taken from the image alone, so an answer that got lost changes nothing. A fenced broker may be
elected: else the first broker of a cluster could never be let in. With the key goes the history of
controllers, by which brokers tell a copy of the store (`images.controller_history`).
"""

import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

from broker.controller.images.broker_records import encode_controller
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.controller_history import (
    CONTROLLERS_KEYS,
    HISTORY_KEY,
    WRITES_KEY,
    ControllerHistory,
)
from broker.controller.images.metadata_records import CONTROLLER_KEY
from broker.controller.store.metadata_store import (
    MetadataStore,
    Put,
    StoreError,
    key_absent,
    unchanged_since,
)
from broker.runtime.timer import Timer, TimerHandle

LOGGER = logging.getLogger(__name__)

TURN_MS: Final = 20.0
"""Between the attempts of two brokers, in order of their ids."""

AGAIN_MS: Final = 200.0
"""Before another attempt, when there is still no controller."""


class Member(Protocol):
    """This broker's place in the cluster."""

    @property
    def lease(self) -> int:
        """As it is now; 0: it has none."""
        ...

    @property
    def broker_epoch(self) -> int:
        """Of this life of the process."""
        ...


class Elected(Protocol):
    """What becomes the controller, and stops being it."""

    def on_elected(self, epoch: int) -> None:
        """In the turn of the image that says so, or soon after."""
        ...

    def on_resigned(self) -> None:
        """Harmless when it is not the controller."""
        ...


class ControllerElection:
    """See the module. `on_image` gets every image; `stop` before the store is closed."""

    def __init__(
        self,
        store: MetadataStore,
        *,
        node_id: int,
        member: Member,
        timer: Timer,
        elected: Elected,
        start: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        """Nothing happens before the first image.

        Args:
            store: Of the cluster.
            node_id: Of this broker.
            member: Has the lease that the key is put under.
            timer: For the attempts.
            elected: Hears what has come of it.
            start: Runs a coroutine, which is finished before the store is closed.
        """
        self._store = store
        self._node_id = node_id
        self._member = member
        self._timer = timer
        self._elected = elected
        self._start = start
        self._image: ClusterImage | None = None
        self._next: TimerHandle | None = None
        self._is_busy = False
        self._is_stopped = False
        self._ours = 0
        self._foreign = 0

    @property
    def epoch(self) -> int:
        """The epoch in which this broker is the controller; 0: it is not."""
        return self._ours

    def on_image(self, _old: ClusterImage | None, new: ClusterImage) -> None:
        """Try where there is no controller; notice that it is this broker, or no longer is."""
        self._image = new
        if self._ours and new.controller_epoch != self._ours:
            self._resign()
        self._act_on_image()

    def on_deposed(self, epoch: int) -> None:
        """A transaction was refused: the key is gone, whatever the image says."""
        if epoch == self._ours:
            self._foreign = epoch
            self._resign()

    def stop(self) -> None:
        """Resign and try no more; the key goes with the lease."""
        self._is_stopped = True
        if self._next is not None:
            self._next.cancel()
        if self._ours:
            self._resign()

    def _resign(self) -> None:
        self._ours = 0
        self._elected.on_resigned()

    def _act_on_image(self) -> None:
        """Do what the newest image asks for; what is running calls this again when it ends."""
        image = self._image
        if self._is_stopped or self._is_busy or image is None:
            return
        epoch = image.controller_epoch
        if epoch == 0:
            me = image.brokers.get(self._node_id)
            # Without a lease there is nothing to try; that it has one will be another image.
            if me is not None and me.is_live:
                self._call_later(TURN_MS * _rank(image, self._node_id), self._create)
        elif image.controller_id == self._node_id and epoch not in (self._ours, self._foreign):
            self._run(self._make_sure(epoch))

    def _call_later(self, delay_ms: float, then: Callable[[], None]) -> None:
        if self._next is None:

            def due() -> None:
                self._next = None
                then()

            self._next = self._timer.call_later_ms(delay_ms, due)

    def _create(self) -> None:
        image = self._image
        if self._is_stopped or self._is_busy or image is None:
            return
        if image.controller_epoch:
            # There is one meanwhile; it may be this broker, which has to act on it then.
            self._act_on_image()
            return
        lease = self._member.lease
        if lease:
            self._run(self._put(lease))
        else:
            self._call_later(TURN_MS, self._act_on_image)

    def _run(self, attempt: Coroutine[Any, Any, None]) -> None:
        self._is_busy = True
        self._start(attempt)

    async def _put(self, lease: int) -> None:
        try:
            # Behind the end of the key: no controller writes any more.
            before = ControllerHistory.of((await self._store.range(CONTROLLERS_KEYS)).items)
            await self._store.txn(
                [
                    key_absent(CONTROLLER_KEY),
                    unchanged_since(WRITES_KEY, before.writes_revision),
                    unchanged_since(HISTORY_KEY, before.history_revision),
                ],
                [
                    Put(
                        CONTROLLER_KEY,
                        encode_controller(self._node_id, self._member.broker_epoch),
                        lease,
                    ),
                    Put(HISTORY_KEY, before.at_election()),
                ],
            )
        except StoreError as error:
            # Also where it is not known whether the key is there: the image will show it.
            LOGGER.info("controller election: attempt failed error=%s", error)
        self._is_busy = False
        if self._image is not None and self._image.controller_epoch:
            self._act_on_image()
        else:
            self._call_later(AGAIN_MS, self._act_on_image)

    async def _make_sure(self, epoch: int) -> None:
        """The key names this broker: of this life, or of an earlier one that died just now?"""
        try:
            item = await self._store.get(CONTROLLER_KEY)
        except StoreError as error:
            LOGGER.info("controller election: key cannot be read error=%s", error)
            self._is_busy = False
            self._call_later(AGAIN_MS, self._act_on_image)
            return
        self._is_busy = False
        image = self._image
        if self._is_stopped or image is None:
            return
        if image.controller_epoch == epoch:
            lease = self._member.lease
            if not lease:
                # Which lease is ours is open just now; it may be the key's, which then stays.
                self._call_later(AGAIN_MS, self._act_on_image)
                return
            if item is not None and item.create_revision == epoch and item.lease == lease:
                self._ours = epoch
                self._elected.on_elected(epoch)
                return
            self._foreign = epoch
        self._act_on_image()


def _rank(image: ClusterImage, node_id: int) -> int:
    """How many brokers that may be elected come before this one."""
    return sum(node < node_id and broker.is_live for node, broker in image.brokers.items())
