"""Membership of a broker whose store is shared: registered, with a lease, back after losing it.

    OUTSIDE ──join──> MEMBER ──lease lost, or its live key gone──> RETURNING ──> MEMBER
                        │                                             └──another has registered──┐
                        ├──leave──> LEFT                                                 EXPELLED <┘

Losing the lease is no death: a store may end leases too early (a paused etcd that wakes up). The
process stays what it is, puts its live key again under a new lease and keeps its broker epoch; only
its validity has a gap. What ends it is another registration of its node id.
"""

import asyncio
import enum
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from broker.controller.images.broker_records import BrokerEndpoint, BrokerRegistration, LastRun
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.store.metadata_store import (
    LeaseNotFoundError,
    MetadataStore,
    StoreClosedError,
    StoreError,
    StoreReplacedError,
    StoreUnavailableError,
)
from broker.membership.fencing import Fencing
from broker.membership.keeper_homes import KeeperHome
from broker.membership.lease_keeper import Beat, LeaseKeeper, valid_until
from broker.membership.member_notes import MemberNotes
from broker.membership.membership import MembershipError, SyncLogs
from broker.membership.registration import Registrar
from broker.membership.validity import Validity
from broker.runtime.pauses import pause
from storage.environment.environment import Environment

LOGGER = logging.getLogger(__name__)

TRY_AGAIN_MS: Final = 200.0
"""Before a store that did not answer is asked again."""

LOG_EVERY: Final = 20
"""Attempts to register between two log lines."""

BEAT_MS: Final = 100.0
"""Between two beats of the data loop."""

NOT_JOINED: Final = -1
"""Broker epoch before the registration."""


class State(enum.Enum):
    """See the module."""

    OUTSIDE = "outside"
    MEMBER = "member"
    RETURNING = "returning"
    EXPELLED = "expelled"
    LEFT = "left"


_NEXT: Final = {
    State.OUTSIDE: {State.MEMBER, State.LEFT},
    State.MEMBER: {State.RETURNING, State.LEFT},
    State.RETURNING: {State.MEMBER, State.EXPELLED, State.LEFT},
    State.EXPELLED: {State.LEFT},
    State.LEFT: set(),
}


@dataclass(frozen=True, slots=True)
class Session:
    """How a membership is kept.

    Attributes:
        session_ms: Time of the lease.
        heartbeat_ms: Between two renewals.
        stall_max_ms: How long the data loop may stand still before its lease is given up.
    """

    session_ms: int
    heartbeat_ms: float
    stall_max_ms: float


class LeasedMembership:
    """See the module. Runs on the data loop; its keeper where `home` says.

    Attributes:
        broker_epoch: -1 before `join`.
        losses: How often the lease or the live key was lost.
        fencing: Of other brokers; None where refused connections are no evidence.
    """

    def __init__(
        self,
        store: MetadataStore,
        node_id: int,
        registration: BrokerRegistration,
        session: Session,
        *,
        environment: Environment,
        home: KeeperHome,
        notes: MemberNotes,
        fail: Callable[[str], None],
    ) -> None:
        """Touch nothing yet.

        Args:
            store: Of the cluster.
            node_id: This broker's.
            registration: Without its listeners, which `join` has.
            session: How it is kept.
            environment: Clock and timer.
            home: Where the lease is kept.
            notes: For the next process on the log directories.
            fail: Ends the broker, with a reason for the operator.
        """
        self.broker_epoch = NOT_JOINED
        self.validity = Validity()
        self.hindrance = ""
        self.losses = 0
        self.fencing: Fencing | None = None
        self.registration = registration
        self._store = store
        self._node_id = node_id
        self._session = session
        self._clock = environment.clock
        self._timer = environment.timer
        self._home = home
        self.notes = notes
        self._fail = fail
        self._state = State.OUTSIDE
        self._beat = Beat(self._clock.monotonic_ms())
        self.keeper = LeaseKeeper(
            self.validity,
            self._beat,
            self,
            clock=self._clock,
            interval_ms=session.heartbeat_ms,
            stall_max_ms=session.stall_max_ms,
            deaf_after_ms=session.session_ms,
        )
        self._registrar = Registrar(
            store,
            node_id,
            clock=self._clock,
            timer=self._timer,
            session_ms=session.session_ms,
            past=notes.past,
        )
        self._lease = 0
        # Revision from which on the live key is this lease's: images before it are no news.
        self._live_since = 0
        self._returning: asyncio.Task[None] | None = None
        self._returning_since_ms = 0.0
        self._seen_revision = 0
        self._awaited: tuple[int, asyncio.Future[bool]] | None = None

    @property
    def lease(self) -> int:
        """What other keys of this broker are put under; 0 while it has none."""
        return self._lease if self._state is State.MEMBER else 0

    @property
    def store_away_ms(self) -> float:
        """See `Membership`; 0 until half the time of a session: a renewal may be slow.

        Without a lease it is how long none could be had again: no renewal is sent that could fail.
        """
        silent_ms = self.keeper.silent_ms
        if self._state is State.RETURNING:
            silent_ms = self._clock.monotonic_ms() - self._returning_since_ms
        return silent_ms if silent_ms > self._session.session_ms / 2 else 0.0

    # -- begin -----------------------------------------------------------------------------------

    async def end_past_life(self) -> None:
        """End the session of the process before this one on these directories, which are locked.

        Raises:
            StoreError: The store cannot be used.
        """
        await self._registrar.end_past_life(self.registration)

    def advertise(self, endpoints: Mapping[str, BrokerEndpoint]) -> None:
        """See `Membership.advertise`; a registration is written once in a life of the process."""
        if self._state is State.OUTSIDE:
            self.registration = replace(self.registration, listeners=dict(endpoints))
        elif dict(endpoints) != self.registration.listeners:
            LOGGER.warning(
                "changed listeners are advertised after the next start only node=%d",
                self._node_id,
            )

    async def join(self, sync_logs: SyncLogs) -> None:
        """Register; see `Membership.join`."""
        if self.registration.ended is LastRun.SAME_BOOT and not await sync_logs():
            self.registration = replace(self.registration, ended=LastRun.UNKNOWN)
        epoch, lease, until_ms = await self._registered()
        self.broker_epoch = epoch
        self._beat_now()
        self._go(State.MEMBER)
        # At once: images that are older than the registration come meanwhile.
        self._hold(lease, epoch, until_ms)
        self._home.run(self.keeper)
        LOGGER.info(
            "broker registered node=%d epoch=%d last_run=%s",
            self._node_id,
            epoch,
            self.registration.ended.value,
        )
        await self.notes.begin(epoch)

    async def _registered(self) -> tuple[int, int, float]:
        """Register; broker epoch, lease, and until when that is good.

        One lease, for as long as it lives, whatever answers are lost: what was registered under it
        without an answer is found again, and is still kept.
        """
        lease = 0
        attempts = 0
        while True:
            try:
                if not lease:
                    lease = await self._store.grant_lease(self._session.session_ms)
                epoch = await self._registrar.register(self.registration, lease)
                # It may have taken long, waiting for another's session.
                sent_ms = self._clock.monotonic_ms()
                ttl_ms = await self._store.keep_lease_alive(lease)
            except LeaseNotFoundError:
                lease = 0
            except StoreUnavailableError as error:
                self.hindrance = str(error)
                if attempts % LOG_EVERY == 0:
                    LOGGER.warning("broker not registered yet: %s node=%d", error, self._node_id)
                attempts += 1
                await pause(self._timer, TRY_AGAIN_MS)
            except BaseException:
                if lease:
                    with suppress(StoreError):
                        await self._store.revoke_lease(lease)
                raise
            else:
                self.hindrance = ""
                return epoch, lease, valid_until(sent_ms, ttl_ms)

    def is_let_in(self, image: ClusterImage) -> bool:
        """See `Membership.is_let_in`."""
        me = image.brokers.get(self._node_id)
        return me is not None and me.epoch == self.broker_epoch and not me.is_fenced

    # -- kept ------------------------------------------------------------------------------------

    def lost(self, lease: int) -> None:
        """See `LeaseOwner`; called where the keeper runs."""
        self._home.call(lambda: self._lost(lease, "its lease has ended"))

    def late(self, lease: int, until_ms: float) -> None:
        """See `LeaseOwner`; called where the keeper runs."""
        self._home.call(lambda: self._late(lease, until_ms))

    def image_changed(self, image: ClusterImage) -> None:
        """Look at what an image says of this broker."""
        self.notes.seen(image)
        self._seen_revision = image.revision
        awaited = self._awaited
        if awaited is not None and image.revision >= awaited[0] and not awaited[1].done():
            awaited[1].set_result(True)
        if self.fencing is not None and self._state is State.MEMBER:
            self.fencing.image_changed(image)
        if self._state is not State.MEMBER or image.revision < self._live_since:
            return
        facts = image.facts.get(self._node_id)
        if facts is None or facts.epoch != self.broker_epoch:
            self._lost(self._lease, "its registration is not there")
        elif facts.live != self.registration.incarnation:
            self._lost(self._lease, "its live key is gone")

    def _hold(self, lease: int, revision: int, until_ms: float) -> None:
        self._lease = lease
        self._live_since = revision
        self.keeper.keep(lease, self.validity.grant(until_ms))

    def _lost(self, lease: int, why: str) -> None:
        if self._state is not State.MEMBER or lease != self._lease:
            return
        self.losses += 1
        LOGGER.warning("broker comes back node=%d why=%s", self._node_id, why)
        self._return(self._with_new_lease())

    def _late(self, lease: int, until_ms: float) -> None:
        if self._state is State.MEMBER and lease == self._lease:
            self._return(self._with_lease(lease, until_ms))

    def _return(self, way: Coroutine[Any, Any, None]) -> None:
        self.keeper.release()
        self.validity.end()
        self._go(State.RETURNING)
        self._returning_since_ms = self._clock.monotonic_ms()
        self._returning = asyncio.get_running_loop().create_task(way, name="return to the cluster")

    async def _with_lease(self, lease: int, until_ms: float) -> None:
        """Put the live key again under a lease that lives."""
        try:
            revision = await self._registrar.come_back(self.registration, self.broker_epoch, lease)
        except MembershipError as error:
            self._expel(error)
        except (StoreError, LeaseNotFoundError):
            await self._with_new_lease()
        else:
            if not await self._is_seen(revision):
                await self._with_new_lease()
                return
            self._go(State.MEMBER)
            self._hold(lease, revision, until_ms)

    async def _with_new_lease(self) -> None:
        """Put the live key again under a new lease; tried for as long as it takes."""
        attempts = 0
        while True:
            sent_ms = self._clock.monotonic_ms()
            try:
                lease = await self._store.grant_lease(self._session.session_ms)
                revision = await self._registrar.come_back(
                    self.registration, self.broker_epoch, lease
                )
            except MembershipError as error:
                self._expel(error)
                return
            except (StoreClosedError, StoreReplacedError) as error:
                self.hindrance = str(error)
                LOGGER.error("broker does not come back node=%d error=%s", self._node_id, error)
                return
            except StoreError as error:
                self.hindrance = str(error)
                if attempts % LOG_EVERY == 0:
                    LOGGER.warning("broker not back yet: %s node=%d", error, self._node_id)
                attempts += 1
                await pause(self._timer, TRY_AGAIN_MS)
                continue
            if not await self._is_seen(revision):
                continue
            self.hindrance = ""
            self._go(State.MEMBER)
            self._hold(lease, revision, valid_until(sent_ms, self._session.session_ms))
            LOGGER.info("broker is back node=%d epoch=%d", self._node_id, self.broker_epoch)
            return

    async def _is_seen(self, revision: int) -> bool:
        """Whether the image shows its return; False: not in half the time of a session.

        Until then the image may be from before its absence: this broker would be valid, and would
        answer as the leader of what another has led meanwhile.
        """
        if self._seen_revision >= revision:
            return True
        seen: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._awaited = (revision, seen)

        def give_up() -> None:
            if not seen.done():
                seen.set_result(False)

        timer = self._timer.call_later_ms(self._session.session_ms / 2, give_up)
        try:
            return await seen
        finally:
            timer.cancel()
            self._awaited = None

    def _expel(self, error: MembershipError) -> None:
        self._go(State.EXPELLED)
        self._fail(str(error))

    def disk_failed(self) -> None:
        """See `Membership.disk_failed`."""
        self.notes.disk_failed()

    def acted(self) -> None:
        """See `Membership.acted`."""
        self.notes.acted()

    def logs_lost(self) -> None:
        """However the process before has ended: this one has not what that had."""
        if self._state is State.OUTSIDE and self.registration.ended is not LastRun.UNKNOWN:
            LOGGER.warning(
                "logs or their ends are missing, the last run counts as unknown node=%d",
                self._node_id,
            )
            self.registration = replace(self.registration, ended=LastRun.UNKNOWN)

    # -- end -------------------------------------------------------------------------------------

    async def leave(self) -> None:
        """Revoke the lease, so that its end need not be waited for; see `Membership.leave`."""
        was_member = self._state is State.MEMBER
        await self.halt()
        await self.notes.end()
        if was_member:
            try:
                await self._store.revoke_lease(self._lease)
            except LeaseNotFoundError:
                LOGGER.info("the lease had ended already node=%d", self._node_id)
            except StoreError as error:
                LOGGER.warning("lease not revoked, it ends by itself error=%s", error)

    async def halt(self) -> None:
        """Stop keeping the lease, as the end of the process would: it ends by itself."""
        if self._state is State.LEFT:
            return
        self._go(State.LEFT)
        self.keeper.release()
        self.validity.end()
        if self._returning is not None:
            self._returning.cancel()
            with suppress(asyncio.CancelledError):
                await self._returning
        if self.fencing is not None:
            await self.fencing.aclose()
        await self._home.stop()

    def _go(self, state: State) -> None:
        assert state in _NEXT[self._state], f"{self._state} to {state}"
        self._state = state

    def _beat_now(self) -> None:
        if self._state is State.LEFT:
            return
        self._beat.at_ms = self._clock.monotonic_ms()
        self._timer.call_later_ms(BEAT_MS, self._beat_now)
