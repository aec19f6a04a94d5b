"""Remote storage of a broker, put together: its pages, and settings that it takes while it runs."""

from typing import TYPE_CHECKING, Final

from broker.remote.admin_pages import TierPages
from broker.remote.remote_storage import RemoteStorage
from broker.remote.tier_settings import tier_home, tier_settings
from config.broker import BROKER_KEYS

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.network.admin_http import AdminServer
    from broker.node.dynamic_settings import DynamicSettings
    from broker.peers.peers import Peers
    from broker.replicas.lookups import Lookups
    from broker.replicas.replica_manager import ReplicaManager
    from config.broker import BrokerConfig
    from storage.environment.alerts import Alerts
    from storage.environment.environment import Environment
    from storage.manager.log_manager import LogManager
    from tiered.tier import OpenTier

REMOTE_KEYS: Final = tuple(
    name
    for name, row in BROKER_KEYS.items()
    if row.dynamic and name.startswith(("remote.", "rsm.", "rlmm.", "tier."))
)
"""Settings of remote storage that take effect while the broker runs."""


def build_remote(
    controller: "Controller",
    dynamic: "DynamicSettings",
    *,
    environment: "Environment",
    replicas: "ReplicaManager",
    log_manager: "LogManager",
    lookups: "Lookups",
    admin: "AdminServer",
    alerts: "Alerts",
    peers: "Peers | None" = None,
    open_tier: "OpenTier | None" = None,
) -> RemoteStorage:
    """Remote storage that serves nothing yet.

    Args:
        controller: With the settings and topics.
        dynamic: Settings that change.
        environment: Of the broker.
        replicas: What is open here.
        log_manager: Writes log starts down.
        lookups: By time, which remote storage answers later.
        admin: Gets its pages.
        alerts: Of the broker.
        peers: Other brokers; None: this one is alone.
        open_tier: What moves remote bytes; None: as the settings say.
    """
    settings = controller.settings
    home = tier_home(settings, environment.filesystem)
    effective = controller.effective_settings
    remote = RemoteStorage(
        tier_settings(effective, home),
        replicas=replicas,
        controller=controller,
        environment=environment,
        log_dir=home,
        node_id=settings.node_id,
        checkpoint_log_starts=log_manager.checkpoints.write_log_start_offsets,
        alerts=alerts,
        open_tier=open_tier,
    )
    remote.join(peers)
    pages = TierPages(
        remote, replicas, cluster_id=controller.image.cluster_id, node_id=settings.node_id
    )
    admin.add(pages.pages, pages.actions)

    def change(settings: "BrokerConfig") -> None:
        lookups.set_timeout(float(settings.remote_list_offsets_request_timeout_ms))
        remote.on_settings(tier_settings(settings, home))

    lookups.set_timeout(float(effective.remote_list_offsets_request_timeout_ms))
    dynamic.subscribe(REMOTE_KEYS, lambda _, after: change(after))
    return remote
