"""Assigned user partitions of one metadata partition.

want ──> wanted ──show──> visible ──hide, hide_all──> wanted again
           └───forget──────┴──> (nothing); waiters are released
"""

import asyncio

from tiered.metadata.partition_state import PartitionKey, UserPartition, key_of
from tiered.segment_metadata import TopicIdPartition


class WantedPartition:
    """One of them.

    Attributes:
        partition: Which.
        user: What is known of it; None: it is not visible.
        waiter: Done when it is visible or forgotten; made by the first waiter.
    """

    __slots__ = ("partition", "user", "waiter")

    def __init__(self, partition: TopicIdPartition) -> None:
        self.partition = partition
        self.user: UserPartition | None = None
        self.waiter: asyncio.Future[None] | None = None

    def answer(self) -> None:
        """Release the waiters."""
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class WantedPartitions:
    """See the module."""

    __slots__ = ("_wanted",)

    def __init__(self) -> None:
        self._wanted: dict[PartitionKey, WantedPartition] = {}

    def __len__(self) -> int:
        return len(self._wanted)

    def want(self, partition: TopicIdPartition) -> bool:
        """Want one; False: it was wanted already."""
        key = key_of(partition)
        if key in self._wanted:
            return False
        self._wanted[key] = WantedPartition(partition)
        return True

    def forget(self, key: PartitionKey) -> TopicIdPartition | None:
        """It is not wanted any more; None: it never was."""
        wanted = self._wanted.pop(key, None)
        if wanted is None:
            return None
        wanted.answer()
        return wanted.partition

    def forget_all(self) -> None:
        """None is wanted any more."""
        for key in list(self._wanted):
            self.forget(key)

    def invisible(self) -> list[WantedPartition]:
        """Those that wait to be shown."""
        return [wanted for wanted in self._wanted.values() if wanted.user is None]

    def show(self, wanted: WantedPartition, user: UserPartition) -> None:
        """It is visible, unless it was hidden or forgotten meanwhile (and perhaps wanted again)."""
        if self._wanted.get(key_of(wanted.partition)) is wanted:
            wanted.user = user
            wanted.answer()

    def hide(self, key: PartitionKey) -> None:
        """What is known of one may be out of date: it waits to be shown again.

        Also if it is being shown just now, by what had been read before.
        """
        wanted = self._wanted.get(key)
        if wanted is not None:
            again = self._wanted[key] = WantedPartition(wanted.partition)
            again.waiter, wanted.waiter = wanted.waiter, None

    def hide_all(self) -> None:
        """What is known of them is in doubt."""
        for wanted in self._wanted.values():
            wanted.user = None

    def visible(self, partition: TopicIdPartition) -> UserPartition | None:
        """What is known of a user partition; None: it is not visible."""
        wanted = self._wanted.get(key_of(partition))
        return None if wanted is None else wanted.user

    async def until_visible(self, partition: TopicIdPartition) -> None:
        """Wait until it is, or is not wanted (any more)."""
        wanted = self._wanted.get(key_of(partition))
        if wanted is None or wanted.user is not None:
            return
        if wanted.waiter is None:
            wanted.waiter = asyncio.get_running_loop().create_future()
        await asyncio.shield(wanted.waiter)
