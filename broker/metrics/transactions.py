"""Metrics of transactions, of their coordinator and of the logs they are open in."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from broker.metrics.coordinator_loads import load_metrics
from broker.metrics.families import counter, gauge

if TYPE_CHECKING:
    from broker.replicas.replica_manager import ReplicaManager
    from broker.transactions.coordinator.transaction_coordinator import TransactionCoordinator
    from storage.environment.clock import Clock

TRANSACTIONS = "varve_transaction_coordinator"


class TransactionMetrics:
    """See `collect`."""

    def __init__(
        self, transactions: "TransactionCoordinator", replicas: "ReplicaManager", clock: "Clock"
    ) -> None:
        self._transactions = transactions
        self._replicas = replicas
        self._clock = clock

    async def collect(self) -> AsyncIterator[Metric]:
        """Families of this part."""
        coordinator = self._transactions
        now_ms = self._clock.now_ms()
        oldest_ms = 0
        states: dict[str, int] = {}
        async for metadata in coordinator.transactions():
            state = metadata.state
            states[state.label] = states.get(state.label, 0) + 1
            if not state.may_expire:
                oldest_ms = max(oldest_ms, now_ms - metadata.start_timestamp_ms)
        yield gauge(
            f"{TRANSACTIONS}_transactional_ids",
            "Transactional ids of this coordinator, by state.",
            ("state",),
            [((state,), count) for state, count in sorted(states.items())],
        )
        yield gauge(
            f"{TRANSACTIONS}_oldest_open_ms",
            "Age of the oldest ongoing transaction, in milliseconds.",
            (),
            [((), oldest_ms)],
        )
        stats = coordinator.stats
        yield counter(
            f"{TRANSACTIONS}_ended",
            "Completed transactions: all their markers are written.",
            ("result",),
            [(("commit",), stats.commits), (("abort",), stats.aborts)],
        )
        for name, value, text in (
            ("timed_out", stats.timeouts, "Transactions aborted because their time was up."),
            ("fenced", stats.fenced, "Transactions aborted by a producer's next InitProducerId."),
            ("expired_ids", stats.expired_ids, "Transactional ids forgotten after long silence."),
            ("marker_retries", stats.marker_retries, "Markers sent again to partitions away."),
        ):
            yield counter(f"{TRANSACTIONS}_{name}", text, (), [((), value)])
        for family in load_metrics(TRANSACTIONS, "__transaction_state", stats):
            yield family
        yield gauge(
            f"{TRANSACTIONS}_unavailable_partitions",
            "Partitions of __transaction_state that cannot be read; their transactional ids "
            "have no coordinator.",
            (),
            [((), len(coordinator.unavailable))],
        )
        yield gauge(
            f"{TRANSACTIONS}_loading",
            "1 while partitions of __transaction_state are being loaded.",
            (),
            [((), int(coordinator.is_loading))],
        )
        producers = open_partitions = 0
        for partition in self._replicas.partitions():
            state_of_log = partition.log.producer_state
            producers += state_of_log.producer_id_count
            open_partitions += state_of_log.first_unstable_offset is not None
        yield gauge(
            "kafka_server_replicamanager_produceridcount",
            "Producer ids known to the logs of this broker.",
            (),
            [((), producers)],
        )
        yield gauge(
            "varve_partitions_with_open_transactions",
            "Partitions whose last stable offset is held back by a transaction.",
            (),
            [((), open_partitions)],
        )
