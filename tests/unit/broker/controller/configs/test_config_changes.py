"""Changes of settings: what is refused, what is committed, what is neither."""

from collections.abc import Coroutine, Sequence
from typing import Any

from broker.controller.configs.config_changes import ConfigChanges
from broker.controller.configs.configs import ConfigRules
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.metadata_records import ConfigResource, ResourceType, config_key
from broker.controller.store.metadata_store import Delete, Put, StoreError, StoreUnavailableError
from broker.controller.store.store_writer import Unit
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode

EVERYWHERE = ConfigResource(ResourceType.BROKER, "")
NO_TOPIC = ConfigResource(ResourceType.TOPIC, "t")
TWO = {"message.max.bytes": "2000"}


class FakeChanges:
    """Commits to nothing."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.error: StoreError | None = None

    async def run(self, change: Coroutine[Any, Any, Any]) -> Any:
        return await change

    async def commit(self, units: Sequence[Unit]) -> list[StoreError | None]:
        self.units += units
        return [self.error] * len(units)


class World:
    def __init__(self, image: ClusterImage) -> None:
        self.fake = FakeChanges()
        changes: Any = self.fake
        self.changes = ConfigChanges(
            changes, image=lambda: image, rules=ConfigRules(BrokerConfig())
        )

    async def alter(
        self, wanted: dict[ConfigResource, dict[str, str]], *, validate_only: bool = False
    ) -> list[ErrorCode]:
        results = await self.changes.alter(
            list(wanted), wanted.__getitem__, validate_only=validate_only
        )
        assert list(results) == list(wanted)
        return [result.error for result in results.values()]

    @property
    def operations(self) -> list[object]:
        return [operation for unit in self.fake.units for operation in unit.operations]


async def test_what_cannot_be_is_refused_beside_what_is_committed() -> None:
    world = World(ClusterImage.empty())
    wanted = {NO_TOPIC: {"flush.ms": "5"}, EVERYWHERE: TWO}
    codes = await world.alter(wanted)
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
    (put,) = world.operations
    assert isinstance(put, Put)
    assert put.key == config_key(EVERYWHERE)


async def test_validation_and_what_is_so_already_commit_nothing() -> None:
    world = World(ClusterImage.empty())
    assert await world.alter({EVERYWHERE: TWO}, validate_only=True) == [ErrorCode.NONE]
    assert await world.alter({EVERYWHERE: {}}) == [ErrorCode.NONE]
    assert world.operations == []


async def test_nothing_left_to_be_set_deletes_the_key() -> None:
    world = World(ClusterImage.empty())
    await world.alter({EVERYWHERE: TWO})
    (put,) = world.operations
    assert isinstance(put, Put)
    later = World(ClusterImage.empty().updated([(put.key, put.value)], 2))
    assert await later.alter({EVERYWHERE: {}}) == [ErrorCode.NONE]
    assert later.operations == [Delete(config_key(EVERYWHERE))]


async def test_a_store_that_is_away_is_told() -> None:
    world = World(ClusterImage.empty())
    world.fake.error = StoreUnavailableError("away")
    (code,) = await world.alter({EVERYWHERE: TWO})
    assert code is not ErrorCode.NONE
