"""A controller on a store in memory, and the services a handler needs around it."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from broker.controller.controller import Controller
from broker.controller.images.cluster_image import BrokerEndpoint
from broker.controller.store.metadata_store import MetadataStore
from broker.network.connection_info import ConnectionInfo
from broker.requests.request_context import RequestContext
from config.broker import BrokerConfig
from config.listeners import Listener
from storage.environment.randomness import SeededRandomness
from tests.fakes.broker.metadata_store import MemoryStore

if TYPE_CHECKING:
    from broker.services import Services

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
LISTENER = "PLAINTEXT"


async def open_controller(
    store: MetadataStore | None = None, *, seed: int = 0, **settings: object
) -> Controller:
    """A controller of node 1, advertised as broker.example:9092."""
    config = BrokerConfig().replace(**settings) if settings else BrokerConfig()
    return await Controller.open(
        store if store is not None else MemoryStore(),
        config,
        randomness=SeededRandomness(seed),
        cluster_id=CLUSTER_ID,
        endpoints={LISTENER: BrokerEndpoint("broker.example", 9092)},
    )


def services_of(controller: Controller, **parts: object) -> "Services":
    """What a handler gets to see; `parts` are the other services it asks for."""
    return cast(
        "Services",
        SimpleNamespace(
            **{
                "controller": controller,
                "settings": controller.settings,
                "store_is_away": lambda: False,
                "remote": None,
                "log_mover": None,
                **parts,
            }
        ),
    )


def context_of(api_key: int, version: int, listener: str = LISTENER) -> RequestContext:
    """A request of some client on `listener`."""
    return RequestContext(api_key, version, 7, "test", ConnectionInfo(listener, "127.0.0.1"))


def brokers_apart() -> BrokerConfig:
    """Settings of a broker whose brokers call another listener than that of `context_of`."""
    listeners = (Listener(LISTENER, "h", 1), Listener("BROKERS", "h", 2))
    return BrokerConfig().replace(listeners=listeners, inter_broker_listener_name="BROKERS")
