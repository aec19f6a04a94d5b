"""What a broker says of itself when it registers."""

from dataclasses import replace
from uuid import UUID

from broker.controller.images.broker_records import BrokerRegistration, live_key
from broker.controller.images.features import SUPPORTED
from broker.membership.begin import begin_membership
from broker.membership.registration import Registrar
from config.broker import BrokerConfig
from config.version import VERSION
from storage.manager.log_manager import LogManager
from tests.fakes.broker.metadata_store import MemoryStore
from tests.fakes.environment import FakeEnvironment


async def test_it_says_what_the_settings_and_directories_say_and_ends_its_past_life() -> None:
    environment = FakeEnvironment()
    manager = LogManager(environment, ["/a", "/b"])
    manager.startup.open_directories()
    manager.startup.claim("cluster", 1)
    ids = tuple(directory.id for directory in manager.directories if directory.id is not None)
    store = MemoryStore(environment.timer)
    past = BrokerRegistration(UUID(int=9), {}, directories=ids[1:])
    registrar = Registrar(
        store, 1, clock=environment.clock, timer=environment.timer, session_ms=3_000
    )
    await registrar.register(past, await store.grant_lease(60_000))
    membership = await begin_membership(
        store,
        BrokerConfig().replace(broker_rack="r"),
        manager,
        environment=environment,
        fail=lambda _: None,
    )
    said = membership.registration
    assert len(ids) == 2
    assert said == replace(
        past,
        incarnation=said.incarnation,
        rack="r",
        features=SUPPORTED,
        directories=ids,
        release=VERSION,
    )
    assert await store.get(live_key(1)) is None
