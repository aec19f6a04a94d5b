"""What is set at run time counts at once, for who has asked."""

import pytest

from broker.controller.configs.configs import MIN_ISR
from broker.controller.controller import Controller
from broker.controller.images.cluster_image import ConfigResource, ResourceType
from broker.controller.topics.topics import NewTopic
from broker.node.dynamic_settings import DynamicSettings
from config.broker import BrokerConfig
from tests.fakes.broker.controller import open_controller
from tests.fakes.broker.metadata_store import MemoryStore

WAIT = "remote.fetch.max.wait.ms"
PAUSED = "tier.copy.paused"
ME = ConfigResource(ResourceType.BROKER, "1")
ALL = ConfigResource(ResourceType.BROKER, "")


async def alter(controller: Controller, resource: ConfigResource, **settings: str) -> None:
    changes = {resource: {name.replace("_", "."): text for name, text in settings.items()}}
    if resource == ALL:
        changes[resource][MIN_ISR] = "1"
    results = await controller.alter_configs(changes)
    assert [result.message for result in results.values()] == [None]


class Heard:
    """Settings before and after, as told."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []

    def __call__(self, before: BrokerConfig, after: BrokerConfig) -> None:
        self.calls.append((before.remote_fetch_max_wait_ms, after.remote_fetch_max_wait_ms))


async def test_a_change_is_told_with_both_values() -> None:
    """On all brokers, on this one, which is stronger, and back to the default."""
    controller = await open_controller()
    settings, heard = DynamicSettings(controller), Heard()
    settings.subscribe([WAIT], heard)
    await alter(controller, ALL, remote_fetch_max_wait_ms="100")
    await alter(controller, ME, remote_fetch_max_wait_ms="200")
    await alter(controller, ALL, remote_fetch_max_wait_ms="300")
    assert settings.current.remote_fetch_max_wait_ms == 200
    await alter(controller, ME)
    await alter(controller, ALL)
    assert heard.calls == [(500, 100), (100, 200), (200, 300), (300, 500)]
    assert settings.current.remote_fetch_max_wait_ms == 500


async def test_other_changes_are_not_told() -> None:
    """Neither other keys nor other things of the cluster."""
    controller = await open_controller()
    heard = Heard()
    DynamicSettings(controller).subscribe([WAIT], heard)
    await alter(controller, ME, tier_copy_paused="true")
    await controller.create_topics([NewTopic("t", 1, 1)])
    await alter(controller, ConfigResource(ResourceType.GROUP, "g"))
    assert heard.calls == []


async def test_what_was_set_before_this_start_is_told_at_once() -> None:
    """A part is built from the start-up settings; it must not stay with them."""
    store = MemoryStore()
    await alter(await open_controller(store), ME, remote_fetch_max_wait_ms="100")
    settings = DynamicSettings(await open_controller(MemoryStore(disk=store.disk)))
    heard, other = Heard(), Heard()
    settings.subscribe([WAIT], heard)
    settings.subscribe([PAUSED], other)
    assert (heard.calls, other.calls) == ([(500, 100)], [])


async def test_who_fails_does_not_keep_others_from_hearing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is committed."""
    controller = await open_controller()
    settings, heard = DynamicSettings(controller), Heard()

    def fail(_before: BrokerConfig, _after: BrokerConfig) -> None:
        raise ValueError("no")

    settings.subscribe([WAIT], fail)
    settings.subscribe([WAIT], heard)
    await alter(controller, ME, remote_fetch_max_wait_ms="100")
    assert heard.calls == [(500, 100)]
    assert "dynamic config could not be applied" in caplog.text


async def test_what_cannot_change_cannot_be_subscribed_to() -> None:
    """A mistake of ours, found in the first test."""
    settings = DynamicSettings(await open_controller())
    with pytest.raises(AssertionError, match=r"not dynamic: \['log.dirs'\]"):
        settings.subscribe(["log.dirs"], Heard())
