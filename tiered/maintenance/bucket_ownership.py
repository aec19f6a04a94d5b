"""Bucket ownership marker: a small object that names the broker that may delete objects there.

Object `varve-cluster.json`:

    {"version": 1, "clusterId": "<Kafka's cluster id>", "claimedMs": 1700000000000,
     "incarnation": "<random>", "contested": false, "released": false}

A broker that starts puts an incarnation of its own there, if the one it finds is the last it had
itself: that one is kept on its disk. So a copy of a disk that is started beside the first shows:
the first checks again and again, and finds another incarnation. From then on neither may
remove anything, for each of them knows things of which the other does not, until an operator says
which one goes on (`varve tier claim`).

    (unknown) ──no incarnation, or ours and released──────────────> OURS
        │ ─────ours, of a broker that did not stop in order──> TAKEN ──time passes──> OURS
        │                                                        │                     │
        └──another's, or contested──> FOREIGN <──another's (contested by us), contested─┘
                                         └──── take ────> OURS

A claim that is not there is written only by a broker that has never had one. Else the bucket is not
the one this broker knows: its disk is not mounted and there is an empty folder in its place, it was
emptied, or the settings name another one. What was copied there would leave the local disk, and be
gone when the bucket is back. So nothing is copied and nothing removed, whatever the state is, until
the claim is there again, or an operator says that what the bucket held is lost (`varve tier
claim`). Likewise where such a broker finds another cluster's claim, as it is that one's bucket, by
the settings or as it was handed over, or one that cannot be read: it is damaged, and `varve tier
claim` writes it anew.

TAKEN lasts as long as a first broker that still lives would need to notice. A disk that is moved
to another machine takes what is its own, then, without an operator.

Nothing relies on a conditional request: the claim is written and then read back, and it is read
again before anything is removed. A claim that cannot be parsed counts as another cluster's.

Checks are one after the other: of two at once each would take the claim, and find the other's
incarnation where its own should be. A caller that had to wait for a check takes its answer.
"""

import asyncio
import json
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, Protocol

from config.tier import TierConfig
from storage.environment.alerts import AlertKind, Alerts
from storage.environment.environment import Environment
from tiered.deadline import Deadline, call_deadline_ms
from tiered.errors import ObjectNotFoundError, RemoteStorageNotReadyError
from tiered.tier import Tier

CLAIM_KEY: Final = "varve-cluster.json"

VERSION: Final = 1

UNREADABLE: Final = "?"
"""The owner named by a claim that is no claim of ours."""

CHECKS_TO_NOTICE: Final = 3
"""Checks within which a broker that lives notices that another has taken its claim."""

NOTICE_MS_MIN: Final = 5_000.0

FRESH_MS: Final = 1_000.0
"""A check is valid for so long, when many objects are removed one after the other."""


class ClaimState(Enum):
    """See the module."""

    UNKNOWN = "unknown"
    TAKEN = "taken"
    OURS = "ours"
    FOREIGN = "foreign"


class IncarnationMemory(Protocol):
    """Keeps the incarnations that this disk has had, over restarts."""

    async def load(self) -> list[str]:
        """The last ones; raises RemoteStorageError."""
        ...

    async def save(self, incarnations: list[str]) -> None:
        """On disk when this returns; raises RemoteStorageError."""
        ...

    async def has_claimed(self) -> bool:
        """Whether there has been a claim of this broker's; raises RemoteStorageError."""
        ...


class ClaimText(NamedTuple):
    """What a claim says.

    Attributes:
        owner: The cluster's id, `UNREADABLE` if there is none.
        incarnation: Of the broker; empty: a release wrote it that had none, or a restore.
        contested: Two brokers have found each other there.
        released: Its broker has stopped in order.
    """

    owner: str
    incarnation: str = ""
    contested: bool = False
    released: bool = False


class Claim:
    """The claim on the bucket that `tier` reaches.

    Attributes:
        cluster_id: Of this broker's cluster.
        is_missing: The last check found no claim of this cluster where this broker has had one.
        on_found_again: Called when a check finds it after that: what was written in between may lie
            somewhere else.
        owner: The cluster that the last check found; None: there was none yet.
        state: See the module; UNKNOWN for ever without a memory: the cluster's id counts alone.
    """

    __slots__ = (
        "_alerts",
        "_check_lock",
        "_checked_ms",
        "_checks",
        "_clock",
        "_memory",
        "_mine",
        "_ours_from_ms",
        "_randomness",
        "_settings",
        "_tier",
        "_timer",
        "cluster_id",
        "is_missing",
        "on_found_again",
        "owner",
        "state",
    )

    def __init__(
        self,
        *,
        tier: Tier,
        environment: Environment,
        cluster_id: str,
        settings: Callable[[], TierConfig],
        memory: IncarnationMemory | None = None,
        alerts: Alerts | None = None,
    ) -> None:
        """Check nothing yet."""
        self._tier = tier
        self._clock = environment.clock
        self._timer = environment.timer
        self._randomness = environment.randomness
        self.cluster_id = cluster_id
        self._settings = settings
        self._memory = memory
        self._alerts = Alerts() if alerts is None else alerts
        self._mine = ""
        self._checked_ms = float("-inf")
        self._check_lock = asyncio.Lock()
        self._checks = 0
        self._ours_from_ms = float("-inf")
        self.is_missing = False
        self.on_found_again: Callable[[], None] = lambda: None
        self.owner: str | None = None
        self.state = ClaimState.UNKNOWN

    @property
    def has_incarnations(self) -> bool:
        """Whether the claim names a broker of the cluster, and not the cluster alone."""
        return self._memory is not None

    @property
    def is_ours(self) -> bool:
        """The last check found our cluster's claim, and no other broker's."""
        return self.owner == self.cluster_id and self.state is not ClaimState.FOREIGN

    @property
    def is_settled(self) -> bool:
        """Whether something may be removed now, by the last check."""
        return self.is_ours and (self._memory is None or self.state is ClaimState.OURS)

    @property
    def is_removing(self) -> bool:
        """Whether anything may be removed, by the last check."""
        return self.state is not ClaimState.FOREIGN and not self.is_missing

    async def check(self) -> bool:
        """Read the claim, and claim a bucket that has none.

        Returns:
            Whether the bucket is ours.

        Raises:
            RemoteStorageError: It cannot be determined.
        """
        checks = self._checks
        async with self._check_lock:
            if self._checks == checks:
                await self._check()
        return self.is_ours

    async def _check(self) -> None:
        deadline_ms = call_deadline_ms(self._settings().store.call_timeout_ms, 5)
        async with Deadline(self._timer, deadline_ms, "check of the bucket's claim"):
            found = await self._read()
            is_missing = await self._misses(found)
            if found is None and not is_missing:
                await self._write(self._first_claim())
                # Two clusters may have done so at once: the one that is read back has it.
                found = await self._read()
            is_back = self.is_missing and not is_missing
            self.is_missing = is_missing
            if is_back:
                self.on_found_again()
            self.owner = None if found is None else found.owner
            if found is None and not is_missing:
                self.owner = UNREADABLE
            if found is not None and self._memory is not None and self.owner == self.cluster_id:
                await self._compare(found, self._memory)
        self._checked_ms = self._clock.monotonic_ms()
        self._checks += 1
        if self.state is ClaimState.TAKEN and self._checked_ms >= self._ours_from_ms:
            self.state = ClaimState.OURS
        self._report()

    async def require(self) -> None:
        """Called before something is removed that another broker may need.

        Raises:
            RemoteStorageNotReadyError: It may not be, or not yet.
            RemoteStorageError: It cannot be determined.
        """
        if self._memory is None:
            return
        if self._clock.monotonic_ms() - self._checked_ms > FRESH_MS:
            await self.check()
        if not self.is_settled:
            raise RemoteStorageNotReadyError(
                "nothing is deleted from the bucket: "
                + (
                    "its claim is new"
                    if self.state is ClaimState.TAKEN and not self.is_missing
                    else self._why_not()
                )
            )

    async def require_ours(self) -> None:
        """Called before something is written that only the bucket's owner knows.

        The last check counts, however old it is: there is one in every task interval.

        Raises:
            RemoteStorageNotReadyError: The bucket is another cluster's.
            RemoteStorageError: It cannot be determined.
        """
        if not self._checks:
            await self.check()
        if not self.is_ours:
            raise RemoteStorageNotReadyError(f"nothing is written to the bucket: {self._why_not()}")

    def require_bucket(self) -> None:
        """Called before a segment is copied; the last check counts, however old it is.

        Raises:
            RemoteStorageNotReadyError: The bucket is not the one that this broker has claimed.
        """
        if self.is_missing:
            raise RemoteStorageNotReadyError(f"nothing is copied to the bucket: {self._why_not()}")

    async def require_bucket_now(self) -> None:
        """Read the claim and `require_bucket`, after the upload or the removal of a segment.

        Raises:
            RemoteStorageNotReadyError: The bucket is not the one that this broker has claimed.
            RemoteStorageError: It cannot be determined.
        """
        if self._memory is None:
            return
        deadline_ms = call_deadline_ms(self._settings().store.call_timeout_ms, 1)
        async with Deadline(self._timer, deadline_ms, "reading the bucket's claim"):
            # No whole check: who may remove there is another matter, and may wait for a disk.
            found = await self._read()
            if await self._misses(found):
                self.is_missing, self.owner = True, None if found is None else found.owner
                self._report()
        self.require_bucket()

    async def take(self) -> None:
        """An operator says that this broker goes on, and no other of this cluster.

        Raises:
            RemoteStorageNotReadyError: The bucket is another cluster's.
            RemoteStorageError: It cannot be done now.
        """
        if self._memory is None:
            return
        async with self._check_lock:
            await self._take(self._memory)

    async def _take(self, memory: IncarnationMemory) -> None:
        deadline_ms = call_deadline_ms(self._settings().store.call_timeout_ms, 5)
        async with Deadline(self._timer, deadline_ms, "taking the bucket's claim"):
            found = await self._read()
            if found is not None and found.owner == UNREADABLE:
                # Where this cluster has had the claim it is damaged, and no other cluster's.
                found = None if await memory.has_claimed() else found
            self.owner = self.cluster_id if found is None else found.owner
            if self.owner == UNREADABLE:
                raise RemoteStorageNotReadyError(
                    f"the bucket's object {CLAIM_KEY} cannot be read as a claim, and this cluster "
                    "has had none there: if no other cluster uses the bucket, remove that object"
                )
            if self.owner != self.cluster_id:
                raise RemoteStorageNotReadyError(
                    f"the bucket is claimed by cluster {self.owner}: varve tier restore "
                    "--take-ownership is for that"
                )
            self.state = await self._put_mine(found or ClaimText(self.cluster_id), memory)
            self.is_missing = False
        self._checked_ms = self._clock.monotonic_ms()
        self._checks += 1
        self._report()

    async def release(self) -> None:
        """The broker stops in order: its next start need not wait; raises RemoteStorageError."""
        if self._memory is None or self.state not in (ClaimState.OURS, ClaimState.TAKEN):
            return
        async with self._check_lock:
            found = await self._read()
            if found == ClaimText(self.cluster_id, self._mine):
                await self._write(found._replace(released=True))

    async def _misses(self, found: ClaimText | None) -> bool:
        """Whether a claim of this cluster should be there, and is not."""
        if self._memory is None or (found is not None and found.owner == self.cluster_id):
            return False
        return await self._memory.has_claimed()

    def _why_not(self) -> str:
        if self.owner is None:
            return "its claim is missing"
        return "its claim is unreadable" if self.owner == UNREADABLE else "another cluster owns it"

    def _first_claim(self) -> ClaimText:
        """On a bucket without any."""
        return ClaimText(self.cluster_id)

    async def _compare(self, found: ClaimText, memory: IncarnationMemory) -> None:
        if self.state is ClaimState.FOREIGN:
            return
        if self.state is ClaimState.UNKNOWN:
            known = await memory.load()
            if found.contested or (found.incarnation and found.incarnation not in known):
                self.state = ClaimState.FOREIGN
                return
            self.state = await self._put_mine(found, memory)
            if self.state is ClaimState.FOREIGN or not found.incarnation or found.released:
                return
            self.state = ClaimState.TAKEN
            interval_ms = float(self._settings().remote_log_manager_task_interval_ms)
            self._ours_from_ms = self._clock.monotonic_ms() + max(
                CHECKS_TO_NOTICE * interval_ms, NOTICE_MS_MIN
            )
            return
        if found.incarnation == self._mine and not found.contested:
            return
        self.state = ClaimState.FOREIGN
        if not found.contested:
            # So that the other broker, which may have just started, stops too.
            await self._write(found._replace(contested=True, released=False))

    async def _put_mine(self, found: ClaimText, memory: IncarnationMemory) -> ClaimState:
        mine = self._randomness.uuid4().hex
        # Both, until the claim is known to be written: a crash may come in between.
        await memory.save([found.incarnation, mine])
        await self._write(ClaimText(self.cluster_id, mine))
        back = await self._read()
        self._mine = mine
        if back is None or back.incarnation != mine or back.contested:
            return ClaimState.FOREIGN
        await memory.save([mine])
        return ClaimState.OURS

    def _report(self) -> None:
        if self.is_missing:
            self._alerts.set(
                AlertKind.TIER_CLAIM_MISSING,
                CLAIM_KEY,
                self._what_is_missing(),
            )
        else:
            self._alerts.clear(AlertKind.TIER_CLAIM_MISSING, CLAIM_KEY)
        if self.owner == self.cluster_id and self.state is ClaimState.FOREIGN:
            self._alerts.set(
                AlertKind.TIER_NOT_OURS,
                CLAIM_KEY,
                "another broker with this cluster's id uses the bucket too: a copy of this node's "
                "disk was started, or this node is the copy. Nothing is deleted from remote "
                "storage. Stop the other one, then run `varve tier claim` on the one that stays",
            )
        else:
            self._alerts.clear(AlertKind.TIER_NOT_OURS, CLAIM_KEY)

    def _what_is_missing(self) -> str:
        if self.owner == UNREADABLE:
            return (
                f"the bucket's object {CLAIM_KEY} cannot be read as a claim, and this cluster has "
                "had one there: it is damaged, or something else answers in the store's place. "
                "Nothing is copied to remote storage or deleted there until it is readable again. "
                "If the bucket is this cluster's, run `varve tier claim`, which writes it anew"
            )
        if self.owner is not None:
            return (
                f"the bucket is claimed by cluster {self.owner}, and this cluster has had a claim: "
                "the settings name another bucket, or it was handed over (`varve tier restore "
                "--take-ownership`). Nothing is copied to remote storage or deleted there until "
                "this cluster's claim is back"
            )
        return (
            "the bucket has no claim of this cluster, which has had one: its disk is not "
            "mounted, it was emptied, or the settings name another one. Nothing is copied to "
            "remote storage or deleted there until it is back. If what it held is lost, run "
            "`varve tier claim`"
        )

    async def _read(self) -> ClaimText | None:
        try:
            return parse_claim(await self._tier.get_object(CLAIM_KEY))
        except ObjectNotFoundError:
            return None

    async def _write(self, text: ClaimText) -> None:
        await self._tier.put_object(CLAIM_KEY, _encode(text, self._clock.now_ms()))


def encode_claim(cluster_id: str, now_ms: int) -> bytes:
    """A claim of this cluster, which its next broker takes."""
    return _encode(ClaimText(cluster_id), now_ms)


def _encode(text: ClaimText, now_ms: int) -> bytes:
    fields: dict[str, object] = {
        "version": VERSION,
        "clusterId": text.owner,
        "claimedMs": now_ms,
    }
    if text.incarnation:
        fields |= {
            "incarnation": text.incarnation,
            "contested": text.contested,
            "released": text.released,
        }
    return json.dumps(fields, indent=2).encode()


def decode_claim(data: bytes) -> str:
    """The cluster id in a claim, `UNREADABLE` if there is none."""
    return parse_claim(data).owner


def parse_claim(data: bytes) -> ClaimText:
    """What a claim says; of one that makes no sense the owner is `UNREADABLE`."""
    try:
        fields = json.loads(data)
    except ValueError:
        return ClaimText(UNREADABLE)
    owner = fields.get("clusterId") if isinstance(fields, dict) else None
    if not isinstance(owner, str) or not owner:
        return ClaimText(UNREADABLE)
    incarnation = fields.get("incarnation", "")
    return ClaimText(
        owner,
        incarnation if isinstance(incarnation, str) else UNREADABLE,
        fields.get("contested") is True,
        fields.get("released") is True,
    )
