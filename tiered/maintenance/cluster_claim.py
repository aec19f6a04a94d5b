"""The claim of a whole cluster on the bucket: one incarnation for all of its brokers.

The marker is `tiered.maintenance.bucket_ownership`'s. What it names is no broker's disk but the
cluster, so that each of its brokers finds its own:

    (unknown) ──no claim────────────────────────────────────────> written ──read back──> OURS
        │ ─────the cluster's────────────────────────────────────> OURS
        │ ─────of our id, without an incarnation, or released───> written ──read back──> OURS
        └──another cluster's, contested, or a node's of our id──> FOREIGN ── take ──> OURS

A node's of our id is that of a single node which has become the cluster's first and did not stop in
order, or of a copy of it that still runs: an operator has to say which one goes on (`varve tier
claim`). No broker gives the claim back when it stops: the others go on.

Each broker notes on its own disk that there was a claim, and the cluster does in its metadata
store: where it is gone, no broker that finds either note writes it anew (see there). A new broker,
whose mount of the bucket's disk nobody has looked at yet, has the second one only.

All brokers of a cluster write the same text, and nothing else: they may all find a new bucket
without a claim at once, and what one writes late must not hide what another has written and reads
back.
"""

import contextlib
from typing import Final, Protocol

from typing_extensions import override

from tiered.errors import RemoteStorageError
from tiered.maintenance.bucket_ownership import Claim, ClaimState, ClaimText, IncarnationMemory

CLUSTER_INCARNATION: Final = "cluster"
"""Never a node's: those are random, 32 hexadecimal digits."""


class ClusterNote(Protocol):
    """The note of all brokers that a bucket was claimed."""

    async def is_noted(self) -> bool:
        """Whether it is there; raises RemoteStorageError where that cannot be known now."""
        ...

    async def note(self) -> None:
        """Write it; raises RemoteStorageError."""
        ...


class ClusterIncarnation:
    """`IncarnationMemory` of a cluster: the same on every broker, noted by each on its disk."""

    __slots__ = ("_cluster", "_disk", "_is_noted")

    def __init__(self, disk: IncarnationMemory, cluster: ClusterNote) -> None:
        """`disk`: this broker's own, for nothing else; `cluster`: of all."""
        self._disk = disk
        self._cluster = cluster
        self._is_noted = False

    async def load(self) -> list[str]:
        """See IncarnationMemory."""
        return [CLUSTER_INCARNATION]

    async def save(self, incarnations: list[str]) -> None:
        """Note once that there is one; without the note where disk or store refuses it."""
        if self._is_noted:
            return
        is_on_disk = is_in_store = False
        with contextlib.suppress(RemoteStorageError):
            await self._disk.save(incarnations)
            is_on_disk = True
        with contextlib.suppress(RemoteStorageError):
            await self._cluster.note()
            is_in_store = True
        self._is_noted = is_on_disk and is_in_store

    async def has_claimed(self) -> bool:
        """See IncarnationMemory."""
        return self._is_noted or await self._disk.has_claimed() or await self._cluster.is_noted()


class ClusterClaim(Claim):
    """See the module; made with a `ClusterIncarnation` as its memory."""

    __slots__ = ()

    @override
    def _first_claim(self) -> ClaimText:
        return ClaimText(self.cluster_id, CLUSTER_INCARNATION)

    @override
    async def release(self) -> None:
        """Leave the claim to the other brokers."""

    @override
    async def _compare(self, found: ClaimText, memory: IncarnationMemory) -> None:
        if self.state is ClaimState.FOREIGN:
            return
        if found.contested:
            self.state = ClaimState.FOREIGN
        elif found.incarnation == CLUSTER_INCARNATION:
            await memory.save([CLUSTER_INCARNATION])
            self.state = ClaimState.OURS
        elif not found.incarnation or found.released:
            self.state = await self._put_mine(found, memory)
        else:
            if self.state is ClaimState.OURS:
                # A node has taken it, or a restore: so that it stops too.
                await self._write(found._replace(contested=True, released=False))
            self.state = ClaimState.FOREIGN

    @override
    async def _put_mine(self, found: ClaimText, memory: IncarnationMemory) -> ClaimState:
        await self._write(ClaimText(self.cluster_id, CLUSTER_INCARNATION))
        back = await self._read()
        is_mine = back is not None and back.incarnation == CLUSTER_INCARNATION
        if back is None or not is_mine or back.contested:
            return ClaimState.FOREIGN
        await memory.save([CLUSTER_INCARNATION])
        return ClaimState.OURS
