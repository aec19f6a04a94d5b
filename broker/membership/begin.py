"""How a membership begins: what this broker says of itself, and where its lease is kept."""

from collections.abc import Callable

from broker.controller.images.broker_records import BrokerRegistration
from broker.controller.images.features import SUPPORTED
from broker.controller.store.metadata_store import MetadataStore
from broker.membership.leased_membership import LeasedMembership, LoopHome, Session
from config.broker import BrokerConfig
from config.version import VERSION
from storage.environment.environment import Environment
from storage.manager.log_manager import LogManager


async def begin_membership(
    store: MetadataStore,
    settings: BrokerConfig,
    log_manager: LogManager,
    *,
    environment: Environment,
    fail: Callable[[str], None],
) -> LeasedMembership:
    """A membership that has not joined; what the process before this one held has ended.

    Args:
        store: Of the cluster.
        settings: Of this broker.
        log_manager: Its directories are locked and claimed.
        environment: Clock, timer, randomness.
        fail: Ends the broker, with a reason for the operator.

    Raises:
        StoreError: The store cannot be used.
    """
    registration = BrokerRegistration(
        environment.randomness.uuid4(),
        {},
        settings.broker_rack,
        SUPPORTED,
        tuple(
            directory.id
            for directory in log_manager.directories
            if directory.is_online and directory.id is not None
        ),
        VERSION,
    )
    membership = LeasedMembership(
        store,
        settings.node_id,
        registration,
        Session(
            settings.broker_session_timeout_ms,
            settings.broker_heartbeat_interval_ms,
            settings.broker_loop_stall_max_ms,
        ),
        environment=environment,
        home=LoopHome(store, environment),
        fail=fail,
    )
    await membership.end_past_life()
    return membership
