"""Metrics of the partitions that this broker leads: in-sync replicas, and fetches of followers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from broker.metrics.families import counter, gauge

if TYPE_CHECKING:
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager
    from broker.replication.followers.follower_fetches import FollowerFetches
    from broker.replication.isr_changes import IsrChanges
    from broker.replication.quota import ReplicationQuota
    from storage.environment.clock import Clock

SLICE = 500
"""Partitions read before yielding to the event loop."""


class InSyncMetrics:
    """See `collect`. A node that is alone has no followers, and the same names."""

    def __init__(
        self,
        replicas: "ReplicaManager",
        followers: "FollowerFetches | None",
        changes: "IsrChanges | None",
        clock: "Clock",
        quotas: "Sequence[ReplicationQuota]" = (),
    ) -> None:
        """`changes`: of a member of a cluster; `quotas`: the leader's and the follower's."""
        self._quotas = quotas
        self._replicas = replicas
        self._followers = followers
        self._changes = changes
        self._clock = clock

    async def collect(self) -> AsyncIterator[Metric]:
        """ReplicaManager's by Kafka's names, and ours."""
        led = under_replicated = under_min = at_min = doubtful = reassigning = 0
        for number, partition in enumerate(list(self._replicas.partitions()), 1):
            if partition.is_leader:
                led += 1
                missing, spare = _in_sync(partition)
                under_replicated += missing > 0
                under_min += spare < 0
                at_min += spare == 0
                leading = partition.leading
                reassigning += leading is not None and leading.is_reassigning
                doubtful += partition.is_in_doubt(self._clock.monotonic_ms())
            if number % SLICE == 0:
                await asyncio.sleep(0)
        for name, text, value in (
            ("leadercount", "Partitions led here.", led),
            (
                "underreplicatedpartitions",
                "Partitions led here some of whose replicas are not in sync.",
                under_replicated,
            ),
            (
                "reassigningpartitions",
                "Partitions led here whose replicas are moving to other brokers.",
                reassigning,
            ),
            (
                "underminisrpartitioncount",
                "Partitions led here with fewer replicas in sync than min.insync.replicas.",
                under_min,
            ),
            (
                "atminisrpartitioncount",
                "Partitions led here with just min.insync.replicas in sync.",
                at_min,
            ),
        ):
            yield gauge(f"kafka_server_replicamanager_{name}", text, (), [((), value)])
        yield gauge(
            "varve_partitions_in_doubt",
            "Partitions led here that another broker may lead by now: acks=0 and 1 are refused.",
            (),
            [((), doubtful)],
        )
        yield gauge(
            "varve_roles_due",
            "Partitions whose roles the newest image may have changed, and that have not taken "
            "them yet.",
            (),
            [((), self._replicas.roles_due())],
        )
        for side, quota in zip(("leader", "follower"), self._quotas, strict=False):
            yield gauge(
                f"kafka_server_{side}replication_byte_rate",
                f"Bytes per second of throttled replicas, as the {side} counts them.",
                (),
                [((), quota.bytes_per_second)],
            )
            yield counter(
                f"varve_replication_{side}_held_back",
                f"How often a throttled replica had to wait for the {side}'s quota.",
                (),
                [((), quota.held_back)],
            )
        changes = self._changes
        for name, text, count in (
            (
                "isrexpands",
                "Changes of the ISR in which a replica joined.",
                0 if changes is None else changes.expanded,
            ),
            (
                "isrshrinks",
                "Changes of the ISR in which a replica left.",
                0 if changes is None else changes.shrunk,
            ),
            (
                "failedisrupdates",
                "Changes of the ISR that the controller refused or did not answer.",
                0 if changes is None else changes.failed,
            ),
        ):
            yield counter(f"kafka_server_replicamanager_{name}", text, (), [((), count)])
        followers = self._followers
        if followers is None:
            return
        yield counter(
            "varve_follower_fetch_bytes",
            "Bytes of record batches sent to followers.",
            (),
            [((), followers.bytes_out)],
        )
        for name, text, value in (
            ("parked", "Fetches of followers that wait for records.", followers.parked),
            ("sessions", "Fetch sessions of followers.", len(followers.sessions)),
            (
                "session_partitions",
                "Partitions over all sessions of followers.",
                followers.sessions.partition_count,
            ),
        ):
            yield gauge(f"varve_follower_fetch_{name}", text, (), [((), value)])


def _in_sync(partition: "Partition") -> tuple[int, int]:
    """Replicas that are not in sync, and how many more are than `min.insync.replicas` asks for.

    Those that a reassignment adds are not missing.
    """
    leading = partition.leading
    if leading is None:
        return 0, 0
    replicas, in_sync = leading.replication_factor, len(leading.isr)
    return max(replicas - in_sync, 0), in_sync - min(
        partition.log.config.min_insync_replicas, replicas
    )
