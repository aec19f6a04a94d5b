"""The broker's parts for handlers, filled once by the composition root (`broker.broker`)."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from storage.environment.clock import Clock
from storage.environment.randomness import Randomness

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.controller.active.active_controller import ActiveController
    from broker.controller.channel import ControllerChannel
    from broker.controller.controller import Controller
    from broker.groups.coordinator import GroupCoordinator
    from broker.remote.remote_storage import RemoteStorage
    from broker.replicas.log_mover import LogMover
    from broker.replicas.lookups import Lookups
    from broker.replicas.replica_manager import ReplicaManager
    from broker.replication.followers.follower_fetches import FollowerFetches
    from broker.requests.request_context import RequestContext
    from broker.runtime.disk import Disk
    from broker.runtime.timer import Timer
    from broker.share.delivery.share_partitions import SharePartitions
    from broker.share.routing.end_offsets import EndOffsets
    from broker.share.state.share_coordinator import ShareCoordinator
    from broker.transactions.coordinator.transaction_coordinator import TransactionCoordinator
    from broker.transactions.interfaces import PartitionRegistrar
    from broker.transactions.partitions.refused_batches import RefusedBatches
    from config.broker import BrokerConfig
    from protocol.messages.api_versions import ApiVersion
    from storage.manager.log_manager import LogManager


@dataclass(slots=True)
class Services:
    """The broker's parts, by name.

    `controller.image` is the newest `ClusterImage`: read it once per request, it is replaced as a
    whole and never changed.
    """

    settings: "BrokerConfig"
    clock: Clock
    randomness: Randomness
    timer: "Timer"
    disk: "Disk"
    log_manager: "LogManager"
    controller: "Controller"
    replica_manager: "ReplicaManager"
    groups: "GroupCoordinator"
    transactions: "TransactionCoordinator"
    registrar: "PartitionRegistrar"
    share: "SharePartitions"
    share_coordinator: "ShareCoordinator"
    end_offsets: "EndOffsets"
    lookups: "Lookups"
    active_controller: "ActiveController"
    channel: "ControllerChannel"
    store_is_away: "Callable[[], bool]" = lambda: False
    """Whether the metadata store has not answered for long, so that nobody can change a thing."""
    remote: "RemoteStorage | None" = None
    log_mover: "LogMover | None" = None
    open_envelope: "Callable[[RequestContext, memoryview], Awaitable[bytes]] | None" = None
    """Handles a request that another broker has forwarded; set with the router."""
    follower_fetches: "FollowerFetches | None" = None
    """The half of Fetch that serves followers; set with the APIs."""
    refused_batches: "RefusedBatches | None" = None
    """Of idempotent producers; set with the APIs."""
    advertised_apis: "list[ApiVersion]" = field(default_factory=list)
    """As ApiVersions lists them; built once, because every client requests them first."""
