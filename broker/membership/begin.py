"""How a membership begins: what this broker says of itself, and where its lease is kept."""

from collections.abc import Callable
from functools import partial
from typing import Final

from broker.controller.images.broker_records import (
    BrokerRegistration,
    LastRun,
    broker_key,
    decode_registration,
)
from broker.controller.images.features import SUPPORTED
from broker.controller.images.store_marks import recovery_of
from broker.controller.store.metadata_store import MetadataStore
from broker.membership.evidence import Evidence
from broker.membership.fencing import Fencing
from broker.membership.keeper_homes import home_of
from broker.membership.last_run import last_run, past_epochs
from broker.membership.leased_membership import LeasedMembership, Session
from broker.membership.member_notes import MemberNotes
from broker.peers.peers import Peers
from config.broker import BrokerConfig
from config.version import VERSION
from storage.environment.environment import Environment
from storage.errors import DiskError
from storage.manager.log_manager import LogManager

KEPT_OPEN: Final = "control"
"""Use of the connections that are held open: what else is sent over them is rare and short."""


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
        log_manager: Its directories are locked and claimed, and their logs not loaded.
        environment: Clock, timer, randomness, disk.
        fail: Ends the broker, with a reason for the operator.

    Raises:
        StoreError: The store cannot be used.
        MetadataFormatError: The registration before this one cannot be read.
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
        await _last_run(store, settings.node_id, log_manager, environment),
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
        home=home_of(store, environment),
        notes=MemberNotes(
            environment,
            lambda: _online(log_manager),
            await environment.run_blocking(
                partial(past_epochs, environment.filesystem, _online(log_manager))
            ),
        ),
        fail=fail,
    )
    await membership.end_past_life()
    return membership


def fence_by_evidence(
    peers: Peers,
    store: MetadataStore,
    membership: LeasedMembership,
    node_id: int,
    environment: Environment,
) -> Fencing:
    """Have the ends of connections to peers be evidence of their deaths.

    A connection to every peer is held open for it. What all brokers say is counted with each image
    that `Fencing.image_changed` gets.
    """
    fencing = Fencing(
        store,
        node_id,
        clock=environment.clock,
        timer=environment.timer,
        lease=lambda: membership.lease,
    )
    peers.observe(Evidence(environment.clock, on_dead=fencing.suspect, on_alive=fencing.withdraw))
    peers.keep_open(KEPT_OPEN)
    membership.fencing = fencing
    return fencing


def sync_all(log_manager: LogManager) -> bool:
    """Sync what an earlier process has left unsynced; False: a disk refuses. Blocks."""
    try:
        for log in log_manager.logs():
            log.flusher.flush()
    except DiskError as error:
        log_manager.fail_log(log, error)
        return False
    return True


async def _last_run(
    store: MetadataStore, node_id: int, log_manager: LogManager, environment: Environment
) -> LastRun:
    item = await store.get(broker_key(node_id))
    if item is not None:
        epoch = item.mod_revision
        before = frozenset(decode_registration(item.key, item.value).directories)
    else:
        # The life before was registered in a store that is lost.
        recovery = await recovery_of(store)
        if recovery is None or node_id not in recovery.brokers:
            return LastRun.UNKNOWN
        epoch, before = recovery.brokers[node_id]
    here = {
        directory.id: directory.path for directory in log_manager.directories if directory.is_online
    }
    if not before <= set(here):
        # What lay in the others is not here.
        return LastRun.UNKNOWN
    paths = [here[directory_id] for directory_id in sorted(before)]
    ended: LastRun = await environment.run_blocking(
        partial(last_run, environment.filesystem, paths, epoch)
    )
    return ended


def _online(log_manager: LogManager) -> list[str]:
    return [directory.path for directory in log_manager.directories if directory.is_online]
