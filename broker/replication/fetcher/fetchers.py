"""All fetchers of a broker: what it follows, of whom."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from broker.replication.fetcher.followed_partition import (
    FollowedPartition,
    FollowedState,
    FollowerPartition,
)
from broker.replication.fetcher.replica_fetcher import FetcherResources, ReplicaFetcher

if TYPE_CHECKING:
    from broker.peers.peers import Peers
    from broker.replication.fetcher.stats import FetcherStats

RECEIVE_BYTES: Final = 64 * 1024
"""Received at once of a leader; larger answers have memory of their own, which follows arrival."""


class Fetchers:
    """See the module. On the loop's thread only.

    A fetcher lives as long as this, also while it has nothing to fetch: there are as many as other
    brokers, times `num.replica.fetchers`.
    """

    __slots__ = ("_fetchers", "_followed", "_peers", "_resources")

    def __init__(self, peers: "Peers", resources: FetcherResources) -> None:
        self._peers = peers
        self._resources = resources
        self._fetchers: dict[tuple[int, int], ReplicaFetcher] = {}
        self._followed: dict[FollowerPartition, tuple[FollowedPartition, ReplicaFetcher]] = {}

    def follow(self, partition: FollowerPartition, leader_id: int) -> None:
        """Fetch a partition from a broker from now on, in the role that it has now."""
        self.unfollow(partition)
        followed = FollowedPartition(partition, leader_id)
        fetcher = self._fetcher_of(leader_id, followed.key)
        self._followed[partition] = (followed, fetcher)
        fetcher.add(followed)

    def unfollow(self, partition: FollowerPartition) -> None:
        """Fetch a partition no longer; nothing happens if it is not fetched."""
        found = self._followed.pop(partition, None)
        if found is not None:
            followed, fetcher = found
            fetcher.remove(followed)

    def _fetcher_of(self, leader_id: int, key: tuple[bytes, int]) -> ReplicaFetcher:
        topic_id, index = key
        number = (int.from_bytes(topic_id[-4:], "big") + index) % max(
            self._resources.settings().fetchers, 1
        )
        fetcher = self._fetchers.get((leader_id, number))
        if fetcher is None:
            connection = self._peers.connection(
                leader_id, f"fetch-{number}", receive_bytes=RECEIVE_BYTES
            )
            fetcher = ReplicaFetcher(leader_id, connection, self._resources)
            self._fetchers[leader_id, number] = fetcher
        return fetcher

    # -- to see it -------------------------------------------------------------------------------

    @property
    def followed(self) -> "Iterable[FollowedPartition]":
        """All partitions that are followed."""
        return (followed for followed, _ in self._followed.values())

    @property
    def stats(self) -> "FetcherStats":
        """Counters of all fetchers."""
        return self._resources.stats

    @property
    def max_lag(self) -> int:
        """The most records that a partition lacks up to its leader's high watermark."""
        return max((followed.lag for followed in self.followed), default=0)

    @property
    def failed_partitions(self) -> int:
        """Partitions that are not fetched because their disk has failed."""
        return sum(followed.state is FollowedState.FAILED for followed in self.followed)

    @property
    def min_requests(self) -> int:
        """Fetches answered by the leader that has answered fewest; its rate is MinFetchRate."""
        return min((fetcher.requests for fetcher in self._fetchers.values()), default=0)

    async def close(self) -> None:
        """Fetch nothing any more; wait for truncations that are under way."""
        for fetcher in self._fetchers.values():
            fetcher.close()
        await self._resources.repair.close()
