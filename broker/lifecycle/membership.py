"""The membership of a broker, and what it does with others, put together.

alone      SoleMembership: never ends, nothing is imported for it
member     a registration and a lease in the store; refused connections fence others
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.membership.membership import Membership, SoleMembership

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.controller.store.metadata_store import MetadataStore
    from broker.peers.peers import Peers
    from storage.environment.clock import Clock
    from storage.environment.environment import Environment
    from storage.manager.log_manager import LogManager


async def build_membership(
    controller: "Controller",
    store: "MetadataStore",
    log_manager: "LogManager",
    *,
    environment: "Environment",
    is_alone: bool,
    fail: Callable[[str], None],
) -> Membership:
    """A membership that has begun, and has not joined yet; it follows the image.

    Raises:
        StoreError: The store cannot be used.
        StartupError: The cluster refuses this broker.
    """
    settings = controller.settings
    if is_alone:
        return SoleMembership(settings.node_id, controller.advertise)
    # Imported by members of a cluster alone.
    from broker.membership.begin import begin_membership

    membership = await begin_membership(
        store, settings, log_manager, environment=environment, fail=fail
    )
    controller.subscribe_now(lambda _, image: membership.image_changed(image))
    return membership


def watch_peers(
    controller: "Controller",
    peers: "Peers",
    store: "MetadataStore",
    membership: Membership,
    clock: "Clock",
) -> None:
    """Report peers whose connections end and are refused, if the settings ask for it."""
    from broker.membership.begin import fence_by_evidence
    from broker.membership.leased_membership import LeasedMembership

    settings = controller.settings
    if settings.broker_fence_on_refused_connections:
        assert isinstance(membership, LeasedMembership)
        fence_by_evidence(peers, store, membership, settings.node_id, clock)
