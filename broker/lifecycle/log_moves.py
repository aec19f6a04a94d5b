"""Moves of logs between the directories of a broker, put together with their throttle."""

from typing import TYPE_CHECKING

from broker.replicas.log_mover import LogMover
from protocol.error_codes import ErrorCode
from storage.environment.clock import sleep_ms
from storage.environment.throttle import Throttle

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.node.dynamic_settings import DynamicSettings
    from broker.replicas.logs.log_lifecycle import LogLifecycle
    from broker.replicas.replica_manager import ReplicaManager
    from broker.replicas.role_reconciler import RoleReconciler
    from config.broker import BrokerConfig
    from storage.environment.environment import Environment
    from storage.manager.log_manager import LogManager


def build_log_mover(
    controller: "Controller",
    dynamic: "DynamicSettings",
    *,
    environment: "Environment",
    log_manager: "LogManager",
    replicas: "ReplicaManager",
    lifecycle: "LogLifecycle",
    roles: "RoleReconciler",
) -> LogMover:
    """A mover that moves nothing yet."""
    settings = controller.settings
    throttle = Throttle(
        environment.clock,
        sleep_ms,
        controller.effective_settings.replica_alter_log_dirs_io_max_bytes_per_second,
    )
    dynamic.subscribe(
        ["replica.alter.log.dirs.io.max.bytes.per.second"],
        lambda _, after: throttle.set_rate(after.replica_alter_log_dirs_io_max_bytes_per_second),
    )
    return LogMover(
        controller=controller,
        log_manager=log_manager,
        replicas=replicas,
        timer=environment.timer,
        resign=lambda moving: roles.close(moving, ErrorCode.KAFKA_STORAGE_ERROR),
        serve=lifecycle.serve,
        config_for=lifecycle.config_for,
        throttle=throttle,
        threads=moving_threads(settings),
    )


def moving_threads(settings: "BrokerConfig") -> int:
    """How many logs move at the same time: one for every directory, unless a number is set.

    Kafka takes any number, and no move ends with one below 1.
    """
    threads = settings.num_replica_alter_log_dirs_threads
    return len(settings.log_dirs) if threads is None or threads < 1 else threads
