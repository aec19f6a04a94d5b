"""The served APIs: every module of `broker.handlers` with an `API_KEY`, and four hot handlers."""

import importlib
import pkgutil
from types import ModuleType
from typing import TYPE_CHECKING

from broker import handlers
from broker.handlers.fetch import FetchHandler
from broker.handlers.offset_commit import OffsetCommitHandler
from broker.handlers.produce import ProduceHandler
from broker.handlers.share_fetch import ShareFetchHandler
from broker.replication.followers.follower_fetches import FollowerFetches
from broker.replication.preferred_replica import RackAwareReplicaSelector
from broker.requests.inter_broker import inter_broker_listener, is_of_member
from broker.requests.kafka_apis import Api, KafkaApis
from broker.transactions.partitions.refused_batches import RefusedBatches
from protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from broker.replicas.fetch_sessions import FetchSessionCache
    from broker.services import Services


def handler_modules() -> list[ModuleType]:
    """Every module of `broker.handlers` that serves an API."""
    names = [info.name for info in pkgutil.iter_modules(handlers.__path__)]
    modules = [importlib.import_module(f"broker.handlers.{name}") for name in names]
    return [module for module in modules if hasattr(module, "API_KEY")]


def build_apis(services: "Services", sessions: "FetchSessionCache") -> KafkaApis:
    """The router of all APIs; `services.advertised_apis` is set."""
    replicas, clock = services.replica_manager, services.clock
    fetch_max_bytes = services.settings.fetch_max_bytes
    apis = KafkaApis(services, map(Api, handler_modules()), clock)
    refused = services.refused_batches = RefusedBatches()
    apis.by_key[ApiKey.PRODUCE].hot = ProduceHandler(
        replicas,
        clock,
        apis.open_reply,
        services.registrar,
        is_from_broker=lambda context: is_of_member(
            services.settings, context, replicas.terms.member_epoch
        ),
        refused=refused,
    )
    brokers_call_at = inter_broker_listener(services.settings)
    followers = services.follower_fetches = FollowerFetches(
        replicas,
        clock,
        services.randomness,
        apis.open_reply,
        is_from_broker=lambda context: context.connection.listener_name == brokers_call_at,
        max_bytes=fetch_max_bytes,
    )
    apis.by_key[ApiKey.FETCH].hot = FetchHandler(
        replicas,
        sessions,
        followers,
        apis.open_reply,
        max_bytes=fetch_max_bytes,
        selector=RackAwareReplicaSelector(
            services.settings.node_id, lambda: services.controller.image.brokers
        )
        if services.settings.replica_selector_class
        else None,
    )
    apis.by_key[ApiKey.SHARE_FETCH].hot = ShareFetchHandler(
        services.share, replicas, apis.open_reply, max_bytes=fetch_max_bytes
    )
    apis.by_key[ApiKey.OFFSET_COMMIT].hot = OffsetCommitHandler(services, apis.open_reply)
    services.advertised_apis = apis.advertised()
    services.open_envelope = apis.open_envelope
    return apis
