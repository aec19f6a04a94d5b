"""Whose a bucket prefix is: a small object says which cluster may remove what it does not know.

Object `varve-cluster.json`:

    {"version": 1, "clusterId": "<Kafka's cluster id>", "claimedMs": 1700000000000}

Nothing relies on a conditional request: the claim is written if there is none and then read back,
and it is read again before each garbage collection. A claim that cannot be understood is somebody
else's.
"""

import json
from collections.abc import Callable
from typing import Final

from storage.clock import Clock
from tiered.deadline import Deadline, call_deadline_ms
from tiered.errors import ObjectNotFoundError
from tiered.settings import TierSettings
from tiered.tier import Tier
from tiered.timer import Timer

CLAIM_KEY: Final = "varve-cluster.json"

VERSION: Final = 1

UNREADABLE: Final = "?"
"""The owner named by a claim that is no claim of ours."""


class Claim:
    """The claim on the bucket that `tier` reaches."""

    __slots__ = ("_clock", "_cluster_id", "_settings", "_tier", "_timer", "owner")

    def __init__(
        self,
        *,
        tier: Tier,
        clock: Clock,
        timer: Timer,
        cluster_id: str,
        settings: Callable[[], TierSettings],
    ) -> None:
        """Look at nothing yet; `owner` is None until `check` has returned once."""
        self._tier = tier
        self._clock = clock
        self._timer = timer
        self._cluster_id = cluster_id
        self._settings = settings
        self.owner: str | None = None

    @property
    def is_ours(self) -> bool:
        """The last look found our claim."""
        return self.owner == self._cluster_id

    async def check(self) -> bool:
        """Look, and claim what nobody has claimed.

        Returns:
            Whether the bucket is ours.

        Raises:
            RemoteStorageError: It cannot be told.
        """
        deadline_ms = call_deadline_ms(self._settings().store.call_timeout_ms, 3)
        async with Deadline(self._timer, deadline_ms, "look at the bucket's claim"):
            try:
                data = await self._tier.get_object(CLAIM_KEY)
            except ObjectNotFoundError:
                await self._tier.put_object(CLAIM_KEY, self._text())
                # Two clusters may have done so at once: whoever is read back has it.
                data = await self._tier.get_object(CLAIM_KEY)
        self.owner = decode_claim(data)
        return self.is_ours

    def _text(self) -> bytes:
        return encode_claim(self._cluster_id, self._clock.now_ms())


def encode_claim(cluster_id: str, now_ms: int) -> bytes:
    """A claim of this cluster."""
    fields = {"version": VERSION, "clusterId": cluster_id, "claimedMs": now_ms}
    return json.dumps(fields, indent=2).encode()


def decode_claim(data: bytes) -> str:
    """The cluster id in a claim, `UNREADABLE` if there is none."""
    try:
        fields = json.loads(data)
    except ValueError:
        return UNREADABLE
    owner = fields.get("clusterId") if isinstance(fields, dict) else None
    return owner if isinstance(owner, str) and owner else UNREADABLE
