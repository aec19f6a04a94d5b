"""Features: which levels may follow which, and that they outlive the process."""

import pytest

from broker.controller.images.features import (
    INITIAL,
    SUPPORTED,
    VARVE_VERSION,
    FeatureUpdate,
    RecordLevel,
    Refusal,
    UpgradeType,
    plan_update,
    writes,
)
from broker.controller.images.metadata_records import (
    FEATURES_KEY,
    MetadataFormatError,
    decode_features,
    encode_features,
)
from broker.controller.store.metadata_store import Delete, Put
from protocol.error_codes import ErrorCode
from tests.fakes.broker.controller import open_controller
from tests.fakes.broker.metadata_store import MemoryStore

NAME = "transaction.version"


@pytest.mark.parametrize(
    ("current", "level", "upgrade_type", "reason"),
    [
        (1, 2, UpgradeType.UPGRADE, None),
        (2, 2, UpgradeType.UPGRADE, None),
        (2, 1, UpgradeType.SAFE_DOWNGRADE, None),
        (2, 0, UpgradeType.UNSAFE_DOWNGRADE, None),
        (2, 1, UpgradeType.UPGRADE, "Can't downgrade the version"),
        (1, 2, UpgradeType.SAFE_DOWNGRADE, "Can't downgrade to a newer version."),
        (1, 3, UpgradeType.UPGRADE, "only supports versions 0-2"),
        (1, -1, UpgradeType.SAFE_DOWNGRADE, "cannot be less than 0"),
        (1, 2, 0, "does not support the given upgrade type"),
        (1, 2, 9, "does not support the given upgrade type"),
    ],
)
def test_levels_that_may_follow(
    current: int, level: int, upgrade_type: int, reason: str | None
) -> None:
    """Down only for who says so; never out of the range."""
    planned = plan_update({NAME: current}, [FeatureUpdate(NAME, level, upgrade_type)], node_id=1)
    if reason is None:
        assert planned == {NAME: level}
    else:
        assert isinstance(planned, Refusal)
        assert planned.error is ErrorCode.INVALID_UPDATE_VERSION
        assert reason in planned.message


@pytest.mark.parametrize("level", [0, 1])
def test_an_unknown_feature_has_no_levels(level: int) -> None:
    """Not even 0, which would be taken for known."""
    planned = plan_update({}, [FeatureUpdate("streams.version", level, 1)], node_id=1)
    assert isinstance(planned, Refusal)
    assert "does not support this feature" in planned.message


@pytest.mark.parametrize("name", ["metadata.version", "kraft.version"])
@pytest.mark.parametrize("kind", [1, 2, 3])
def test_there_is_no_level_of_a_kafka_release(name: str, kind: int) -> None:
    """As `kafka-features.sh upgrade --release-version` asks for, whatever it names first."""
    others = [FeatureUpdate(NAME, 1, kind), FeatureUpdate("streams.version", 1, kind)]
    planned = plan_update({NAME: 1}, [*others, FeatureUpdate(name, 29, kind)], node_id=1)
    assert isinstance(planned, Refusal)
    assert planned.error is ErrorCode.INVALID_UPDATE_VERSION
    assert planned.message.startswith(f"Invalid update version 29 for feature {name}. Varve has no")
    assert "varve.version. Nothing was changed;" in planned.message


def test_records_round_trip() -> None:
    """And a feature that is not named is at level 0."""
    assert decode_features(encode_features(dict(INITIAL))) == INITIAL
    levels = dict.fromkeys(INITIAL, 0) | {NAME: 1}
    assert decode_features(encode_features({NAME: 1})) == levels


@pytest.mark.parametrize(
    "value",
    [
        encode_features({NAME: 3}),
        encode_features({"metadata.version": 29}),
        b'{"v":1}',
        b'{"v":1,"f":7}',
        b'{"v":1,"f":{"group.version":"x"}}',
    ],
)
def test_levels_of_a_newer_release_are_refused(value: bytes) -> None:
    """To work at a level one does not know would break what others rely on."""
    with pytest.raises(MetadataFormatError):
        decode_features(value)


async def test_a_new_cluster_has_the_maximum() -> None:
    """Stored, so that a newer release does not raise it by itself."""
    store = MemoryStore()
    controller = await open_controller(store)
    assert controller.image.features == INITIAL
    (item,) = (await store.range(FEATURES_KEY)).items
    assert decode_features(item.value) == INITIAL
    assert controller.image.revision == (await store.range("")).revision


async def test_metadata_without_features_gets_the_maximum() -> None:
    """That of a release before them."""
    store = MemoryStore()
    await open_controller(store)
    await store.txn(compare=[], then=[Delete(FEATURES_KEY)])
    assert (await open_controller(store)).image.features == INITIAL
    assert (await store.range(FEATURES_KEY)).items


async def test_levels_stay_as_they_were_set() -> None:
    """Across a restart."""
    store = MemoryStore()
    controller = await open_controller(store)
    down = [FeatureUpdate(NAME, 0, UpgradeType.SAFE_DOWNGRADE)]
    assert await controller.update_features(down) == (ErrorCode.NONE, None)
    assert controller.image.features == {**INITIAL, NAME: 0}
    assert (await open_controller(store)).image.features == {**INITIAL, NAME: 0}


async def test_all_or_nothing() -> None:
    """One refusal refuses the request; so does `validate_only` when all is well."""
    controller = await open_controller()
    revision = controller.image.revision
    error, message = await controller.update_features(
        [
            FeatureUpdate("group.version", 0, UpgradeType.SAFE_DOWNGRADE),
            FeatureUpdate(NAME, 3, UpgradeType.UPGRADE),
        ]
    )
    assert error is ErrorCode.INVALID_UPDATE_VERSION
    assert message is not None
    assert NAME in message
    down = [FeatureUpdate(NAME, 1, UpgradeType.SAFE_DOWNGRADE)]
    assert await controller.update_features(down, validate_only=True) == (ErrorCode.NONE, None)
    assert controller.image.features == INITIAL
    assert controller.image.revision == revision


async def test_a_store_with_unknown_levels_is_not_opened() -> None:
    """The broker says why instead of serving."""
    store = MemoryStore()
    await open_controller(store)
    await store.txn(compare=[], then=[Put(FEATURES_KEY, encode_features({NAME: 7}))])
    with pytest.raises(MetadataFormatError, match="level 7"):
        await open_controller(store)


def test_every_feature_can_be_switched_off() -> None:
    """So an operator can always go back."""
    assert {levels.lowest for levels in SUPPORTED.values()} == {0}


def test_every_registered_broker_has_to_support_a_level() -> None:
    """Also one that is fenced; an older release does not know the feature at all."""
    update = [FeatureUpdate(NAME, 1, int(UpgradeType.UPGRADE))]
    current = dict.fromkeys(INITIAL, 0)
    newer = {NAME: (0, 1)}
    planned = plan_update(current, update, node_id=1, brokers={1: newer, 2: newer})
    assert not isinstance(planned, Refusal)
    assert planned[NAME] == 1
    refused = plan_update(current, update, node_id=1, brokers={1: newer, 2: {}})
    assert isinstance(refused, Refusal)
    assert refused.message.endswith("Broker 2 does not support this feature.")
    refused = plan_update(current, update, node_id=1, brokers={3: {NAME: (2, 3)}})
    assert isinstance(refused, Refusal)
    assert refused.message.endswith("Broker 3 only supports versions 2-3")


def test_a_field_is_written_from_its_level_on() -> None:
    """Not where no level is finalised: another broker might write the record without the field."""
    assert writes(INITIAL, RecordLevel.MOVES)
    assert writes({}, RecordLevel.FIRST)
    assert not writes({}, RecordLevel.MOVES)
    assert not writes({VARVE_VERSION: 0}, RecordLevel.MOVES)
    assert SUPPORTED[VARVE_VERSION].highest == max(RecordLevel)
