"""Registration of a broker in the metadata store: the transactions, and what stands in their way.

    look ──> no `live/<id>`                      ──> lease, one transaction ──> broker epoch
         ──> one of this log directory's past     ──> its lease is revoked: we hold the directory's
             process                                  lock, so that process is dead
         ──> one of another log directory, or     ──> waited for, then DUPLICATE_BROKER_REGISTRATION
             of the original of a copied one

The transaction puts `brokers/<id>` and `live/<id>` together, if there is no `live/<id>`; its
revision is the broker epoch. One whose outcome is unknown is looked up by the incarnation, which is
random: it is repeated only with the same comparison, so that it is made once.
"""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

from broker.controller.images.broker_records import (
    BrokerRegistration,
    broker_key,
    decode_live,
    decode_registration,
    encode_live,
    encode_registration,
    live_key,
)
from broker.controller.store.metadata_store import (
    KeyValue,
    LeaseNotFoundError,
    MetadataStore,
    OutcomeUnknownError,
    Put,
    key_absent,
    unchanged_since,
)
from broker.membership.membership import MembershipError
from broker.runtime.pauses import pause
from storage.environment.clock import Clock
from storage.environment.timer import Timer

LOOK_AGAIN_MS: Final = 250.0
"""Between two looks at the session of another process."""

STORE_LATE_MS: Final = 2_000.0
"""How much later than its time a lease may end: an etcd that has another leader, or was started,
gives every lease its whole time again and its election timeout, and looks every 500 ms."""


class DuplicateBrokerError(MembershipError):
    """Another process is registered, and lives, with this node id."""

    def __init__(
        self,
        node_id: int,
        other: BrokerRegistration | None,
        directories: Sequence[UUID] = (),
    ) -> None:
        where = ""
        if other is not None:
            endpoints = ", ".join(
                f"{name}://{endpoint.host}:{endpoint.port}"
                for name, endpoint in other.listeners.items()
            )
            is_copy = not set(other.directories).isdisjoint(directories)
            whose = "the directories that these are a copy of" if is_copy else "other directories"
            where = f", at {endpoints}, with {whose}"
        super().__init__(
            f"DUPLICATE_BROKER_REGISTRATION: a broker {node_id} is registered and running{where}; "
            "give this one another node.id, or stop the other one"
        )


class ExpelledError(MembershipError):
    """Another process has registered with this node id meanwhile."""

    def __init__(self, node_id: int) -> None:
        super().__init__(f"another process has registered as broker {node_id}")


class Registrar:
    """Runs the transactions of one broker; see the module."""

    def __init__(
        self,
        store: MetadataStore,
        node_id: int,
        *,
        clock: Clock,
        timer: Timer,
        session_ms: int,
        past: Collection[int] = (),
    ) -> None:
        """Touch nothing yet.

        Args:
            store: Of the cluster.
            node_id: This broker's.
            clock: For how long another's session is waited for.
            timer: For waiting.
            session_ms: Time of the lease; another's is taken to be alike.
            past: Broker epochs of lives that are over for certain, see `past_epochs`.
        """
        self._store = store
        self._node_id = node_id
        self._clock = clock
        self._timer = timer
        self._session_ms = session_ms
        self._past = past

    async def end_past_life(self, registration: BrokerRegistration) -> None:
        """End the session of the process before this one, if that was on these directories.

        Failover of what it led begins now, and not when its lease ends.

        Raises:
            StoreError: The store cannot be used.
        """
        live = await self._store.get(live_key(self._node_id))
        item = await self._store.get(broker_key(self._node_id))
        if live is not None and item is not None and self._is_past(item, registration, live):
            await self._revoke(live)

    async def wait_for_other(self, directories: Sequence[UUID]) -> None:
        """Wait until no process lives with this node id but one whose directories these are.

        For a start that has touched nothing yet.

        Args:
            directories: Ids of this process's; those that are new have none.

        Raises:
            DuplicateBrokerError: One goes on living.
            StoreError: The store cannot be used.
        """
        deadline_ms = self._patience_ms()
        while True:
            live = await self._store.get(live_key(self._node_id))
            if live is None:
                return
            item = await self._store.get(broker_key(self._node_id))
            other = None if item is None else decode_registration(item.key, item.value)
            if (
                item is not None
                and other is not None
                and item.mod_revision in self._past
                and not set(other.directories).isdisjoint(directories)
            ):
                return
            if self._clock.monotonic_ms() >= deadline_ms:
                raise DuplicateBrokerError(self._node_id, other, directories)
            await pause(self._timer, LOOK_AGAIN_MS)

    def _patience_ms(self) -> float:
        """Until when another's session is waited for.

        It may have been renewed a moment ago, and get its whole time again while it is waited for,
        once: the machine of this broker had etcd's leader, say.
        """
        return self._clock.monotonic_ms() + 2 * (self._session_ms + STORE_LATE_MS)

    async def register(self, registration: BrokerRegistration, lease: int) -> int:
        """Register under `lease`; the broker epoch.

        Raises:
            DuplicateBrokerError: Another process lives with this id, and goes on living.
            LeaseNotFoundError: The lease has ended meanwhile.
            StoreError: The store cannot be used.
        """
        node_id = self._node_id
        deadline_ms = self._patience_ms()
        while True:
            try:
                result = await self._store.txn(
                    [key_absent(live_key(node_id))],
                    [
                        Put(live_key(node_id), encode_live(registration.incarnation), lease),
                        Put(broker_key(node_id), encode_registration(registration)),
                    ],
                )
            except OutcomeUnknownError:
                await pause(self._timer, LOOK_AGAIN_MS)
            else:
                if result.succeeded:
                    return result.revision
            live = await self._store.get(live_key(node_id))
            item = await self._store.get(broker_key(node_id))
            other = None if item is None else decode_registration(item.key, item.value)
            if item is not None and other is not None:
                if other.incarnation == registration.incarnation:
                    return item.mod_revision
                if live is not None and self._is_past(item, registration, live):
                    await self._revoke(live)
                    continue
            if live is None:
                continue
            if self._clock.monotonic_ms() >= deadline_ms:
                raise DuplicateBrokerError(node_id, other, registration.directories)
            await pause(self._timer, LOOK_AGAIN_MS)
            await self._store.keep_lease_alive(lease)

    async def come_back(self, registration: BrokerRegistration, epoch: int, lease: int) -> int:
        """Put `live/<id>` again under `lease`, in the same epoch; the revision that has it.

        Raises:
            ExpelledError: The registration is not this life's any more.
            LeaseNotFoundError: The lease has ended meanwhile.
            StoreError: The store cannot be used; when the outcome is unknown, it may be repeated.
        """
        node_id = self._node_id
        result = await self._store.txn(
            [unchanged_since(broker_key(node_id), epoch)],
            [Put(live_key(node_id), encode_live(registration.incarnation), lease)],
        )
        if not result.succeeded:
            raise ExpelledError(node_id)
        return result.revision

    def _is_past(self, item: KeyValue, mine: BrokerRegistration, live: KeyValue) -> bool:
        """Whether `live` is of an earlier process on a directory that this one has locked.

        That the ids of directories are the same does not show it: a copy has them, too.
        """
        other = decode_registration(item.key, item.value)
        return (
            item.mod_revision in self._past
            and decode_live(live.key, live.value) == other.incarnation
            and other.incarnation != mine.incarnation
            and not set(other.directories).isdisjoint(mine.directories)
        )

    async def _revoke(self, live: KeyValue) -> None:
        try:
            await self._store.revoke_lease(live.lease)
        except LeaseNotFoundError:
            return
