"""The membership of a broker in its cluster, and what it does with others, put together.

A registration and a lease in the store; refused connections fence others. Imported by members of a
cluster alone: a single node has a `SoleMembership`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.membership.begin import begin_membership, fence_by_evidence

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.controller.store.metadata_store import MetadataStore
    from broker.membership.leased_membership import LeasedMembership
    from broker.peers.peers import Peers
    from storage.environment.environment import Environment
    from storage.manager.log_manager import LogManager


async def begin_to_follow(
    controller: "Controller",
    store: "MetadataStore",
    log_manager: "LogManager",
    *,
    environment: "Environment",
    fail: Callable[[str], None],
) -> "LeasedMembership":
    """A membership that has begun, and has not joined yet; it follows the image.

    Raises:
        StoreError: The store cannot be used.
        StartupError: The cluster refuses this broker.
    """
    membership = await begin_membership(
        store, controller.settings, log_manager, environment=environment, fail=fail
    )
    controller.subscribe_now(lambda _, image: membership.image_changed(image))
    # Blocks of producer ids are in no image, and a copy of the store without the last is behind.
    controller.subscribe_revisions(membership.notes.seen)
    return membership


def watch_peers(
    controller: "Controller",
    peers: "Peers",
    store: "MetadataStore",
    membership: "LeasedMembership",
    environment: "Environment",
) -> None:
    """Report peers whose connections end and are refused, if the settings ask for it."""
    settings = controller.settings
    if settings.broker_fence_on_refused_connections:
        fence_by_evidence(peers, store, membership, settings.node_id, environment)
