"""What handlers may use of a broker, and the listeners that bring requests to them."""

from typing import TYPE_CHECKING

from broker.lifecycle.endpoints import advertised_endpoints, look_up
from broker.network.server import LIMIT_KEYS, LISTENER_KEYS, WORKER_KEYS, NetworkServer
from broker.runtime.startup_errors import StartupError
from broker.services import Services

if TYPE_CHECKING:
    from broker.assembly.local_parts import LocalParts
    from broker.controller.controller import Controller
    from broker.lifecycle.cluster_control import ClusterControl
    from broker.lifecycle.coordinators import Coordinators
    from broker.membership.membership import Membership
    from broker.network.connector import Resolver
    from broker.node.dynamic_settings import DynamicSettings
    from broker.remote.remote_storage import RemoteStorage
    from broker.replicas.log_mover import LogMover
    from broker.requests.kafka_apis import KafkaApis
    from config.broker import BrokerConfig


def build_services(
    local: "LocalParts",
    controller: "Controller",
    control: "ClusterControl",
    coordinators: "Coordinators",
    log_mover: "LogMover",
    remote: "RemoteStorage | None",
    membership: "Membership",
) -> Services:
    """The broker's parts, by the names that handlers have for them."""
    return Services(
        active_controller=control.active,
        channel=control.channel,
        settings=local.settings,
        clock=local.clock,
        randomness=local.environment.randomness,
        timer=local.timer,
        disk=local.disk,
        log_manager=local.log_manager,
        controller=controller,
        replica_manager=local.replicas,
        groups=coordinators.groups,
        transactions=coordinators.transactions,
        registrar=coordinators.registrar,
        share=coordinators.share,
        share_coordinator=coordinators.share_state,
        end_offsets=coordinators.end_offsets,
        lookups=local.lookups,
        store_is_away=lambda: membership.store_away_ms > 0,
        remote=remote,
        log_mover=log_mover,
    )


def build_network(local: "LocalParts", apis: "KafkaApis") -> NetworkServer:
    """What accepts, reads and answers for these APIs; it does not listen yet."""
    return NetworkServer(
        local.settings,
        loop=local.loop,
        environment=local.environment,
        network=local.network,
        read_cold=local.replicas.read_slice,
        router=apis,
        iteration_end=local.iteration_end,
        connections_max=local.descriptors.connections,
        alerts=local.alerts,
    )


def listen(
    network: NetworkServer,
    settings: "BrokerConfig",
    membership: "Membership",
    dynamic: "DynamicSettings",
    resolve: "Resolver",
) -> None:
    """Accept connections from now on, advertise what is bound, follow what is changed.

    Raises:
        StartupError: An address cannot be listened at.
    """
    try:
        network.start()
    except OSError as error:
        raise StartupError(f"cannot listen: {error}") from error

    def listen_as(after: "BrokerConfig") -> None:
        network.update_listeners(after)
        advertise(after)

    def advertise(as_set: "BrokerConfig") -> None:
        endpoints = advertised_endpoints(as_set, network.addresses)
        membership.advertise(endpoints)
        look_up(endpoints, resolve)

    advertise(settings)
    dynamic.subscribe(LIMIT_KEYS, lambda _, after: network.update_limits(after))
    dynamic.subscribe(LISTENER_KEYS, lambda _, after: listen_as(after))
    dynamic.subscribe(WORKER_KEYS, lambda _, after: network.update_workers(after))
