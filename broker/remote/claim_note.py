"""The note in the metadata store that a cluster has claimed a bucket.

Each broker has such a note on its own disk (`broker.remote.incarnation_file`); this one is for a
broker that is new, or has lost its first log directory. See `tiered.maintenance.cluster_claim`.
"""

from typing import TYPE_CHECKING

from broker.controller.store.metadata_store import StoreError
from tiered.errors import RemoteStorageError

if TYPE_CHECKING:
    from broker.controller.controller import Controller


class ClaimNote:
    """`tiered.maintenance.cluster_claim.ClusterNote` in the store of a controller."""

    __slots__ = ("_controller",)

    def __init__(self, controller: "Controller") -> None:
        self._controller = controller

    async def is_noted(self) -> bool:
        """See ClusterNote."""
        try:
            return await self._controller.has_remote_claim()
        except StoreError as error:
            raise RemoteStorageError(f"whether a bucket was claimed: {error}") from error

    async def note(self) -> None:
        """See ClusterNote."""
        try:
            await self._controller.note_remote_claim()
        except StoreError as error:
            raise RemoteStorageError(f"that a bucket is claimed: {error}") from error
