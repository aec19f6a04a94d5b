"""Figures of the supervisor itself: its brokers' processes, and the metadata store it serves."""

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric

from broker.controller.store.unix.store_host import StoreHost
from broker.metrics.families import Labelled, counter, gauge
from broker.supervisor.merged_metrics import LABEL
from broker.supervisor.supervised_broker import BrokerState, SupervisedBroker
from broker.supervisor.supervisor import Supervisor


def render_own(supervisor: Supervisor, answered: set[str]) -> bytes:
    """Them in Prometheus' text format.

    Args:
        supervisor: Whose they are.
        answered: Node ids of the brokers that gave their figures.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Own(supervisor, answered))
    return generate_latest(registry)


class _Own:
    """A prometheus-client collector."""

    def __init__(self, supervisor: Supervisor, answered: set[str]) -> None:
        self._supervisor = supervisor
        self._answered = answered

    def collect(self) -> Iterator[Metric]:
        yield from _of_brokers(self._supervisor.brokers, self._answered)
        if self._supervisor.host is not None:
            yield from _of_store(self._supervisor.host)


def _of_brokers(brokers: Sequence[SupervisedBroker], answered: set[str]) -> Iterator[Metric]:
    def each(value: Callable[[SupervisedBroker], float]) -> Labelled:
        return [((str(broker.plan.node_id),), float(value(broker))) for broker in brokers]

    label = (LABEL.decode(),)
    yield gauge(
        "varve_supervisor_broker_serving",
        "1: the broker's process lives, and has said that it listens.",
        label,
        each(lambda broker: broker.state is BrokerState.SERVING),
    )
    yield gauge(
        "varve_supervisor_broker_scraped",
        "1: the broker's figures are on this page.",
        label,
        each(lambda broker: str(broker.plan.node_id) in answered),
    )
    yield counter(
        "varve_supervisor_broker_restarts",
        "Starts of the broker's process after it had ended.",
        label,
        each(lambda broker: broker.restarts),
    )


def _of_store(host: StoreHost) -> Iterator[Metric]:
    numbers = host.numbers
    for name, text, value in (
        ("revision", "Newest revision of the metadata store.", host.revision),
        ("leases", "Leases that live in the metadata store.", host.leases),
        ("connections", "Connections to the metadata store.", numbers.connections),
        ("watches", "Watches on the metadata store.", numbers.watches),
    ):
        yield gauge(f"varve_supervisor_store_{name}", text, (), [((), float(value))])
    for name, text, value in (
        ("requests", "Requests that the metadata store answered.", numbers.requests),
        ("refused", "Connections that the metadata store refused.", numbers.refused),
        ("bad_frames", "Connections ended for what they had sent.", numbers.bad_frames),
        ("lost_watches", "Watches ended because they were behind.", numbers.lost_watches),
    ):
        yield counter(f"varve_supervisor_store_{name}", text, (), [((), float(value))])
