"""A broker in the image: what its four keys say together, whichever comes first."""

from itertools import permutations
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.images.broker_records import (
    BrokerEndpoint,
    BrokerRegistration,
    Fence,
    LastRun,
    broker_key,
    decode_controller,
    decode_fence,
    decode_registration,
    draining_key,
    encode_controller,
    encode_draining,
    encode_fence,
    encode_live,
    encode_registration,
    fence_key,
    live_key,
    parse_broker_key,
)
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.features import SupportedRange
from broker.controller.images.metadata_records import CONTROLLER_KEY, MetadataFormatError
from broker.controller.store.metadata_store import KeyValue

LIFE = UUID(int=5)
REGISTRATION = BrokerRegistration(
    LIFE,
    {"PLAINTEXT": BrokerEndpoint("host", 9092)},
    "rack",
    {"group.version": SupportedRange(0, 1)},
    (UUID(int=7), UUID(int=8)),
    "1.0",
    LastRun.SAME_BOOT,
)


def image_of(*changes: tuple[int, str, bytes | None]) -> ClusterImage:
    """Each change in a revision of its own."""
    image = ClusterImage.empty()
    for revision, key, value in changes:
        image = image.updated([(key, value)], revision)
    return image


@given(
    st.builds(
        BrokerRegistration,
        st.uuids(version=4),
        st.dictionaries(
            st.text(max_size=5),
            st.builds(BrokerEndpoint, st.text(max_size=5), st.integers(0, 65535)),
        ),
        st.none() | st.text(max_size=5),
        st.dictionaries(
            st.text(max_size=5),
            st.builds(SupportedRange, st.integers(0, 9), st.integers(0, 9)),
        ),
        st.lists(st.uuids(version=4)).map(tuple),
        st.text(max_size=5),
        st.sampled_from(LastRun),
    )
)
def test_a_registration_comes_back_as_it_was(registration: BrokerRegistration) -> None:
    assert decode_registration("brokers/1", encode_registration(registration)) == registration


@pytest.mark.parametrize(
    "value",
    [b"", b"[]", b'{"v":1}', b'{"v":2,"incarnation":"x"}', b'{"v":1,"epoch":"x","node":"x"}'],
)
def test_a_damaged_value_is_refused(value: bytes) -> None:
    for key in (broker_key(1), live_key(1), draining_key(1), fence_key(1), CONTROLLER_KEY):
        with pytest.raises(MetadataFormatError):
            ClusterImage.empty().updated([(key, value)], 2)


def test_a_key_without_a_number_is_refused() -> None:
    with pytest.raises(MetadataFormatError):
        parse_broker_key("brokers/one")
    assert parse_broker_key(live_key(12)) == ("live/", 12)


def test_a_broker_is_in_from_its_registration_on_and_fenced_until_it_is_let_in() -> None:
    registered = (5, broker_key(1), encode_registration(REGISTRATION))
    image = image_of(registered, (5, live_key(1), encode_live(LIFE)))
    (broker,) = image.brokers.values()
    assert (broker.epoch, broker.is_fenced, broker.is_live) == (5, True, True)
    assert (broker.listeners, broker.rack) == (REGISTRATION.listeners, "rack")
    assert broker.registration == REGISTRATION
    let_in = image.updated([(fence_key(1), encode_fence(5))], 6)
    assert not let_in.brokers[1].is_fenced
    assert let_in.broker_revision > image.broker_revision
    out = let_in.updated([(fence_key(1), encode_fence(0, "its lease ended"))], 7)
    assert out.brokers[1].is_fenced
    assert decode_fence("fences/1", encode_fence(0, "why")) == Fence(0, "why")


def test_what_an_earlier_life_was_granted_is_nothing_to_the_next() -> None:
    """Neither the controller's word, nor the live key, nor that it was to stop."""
    keys = [
        (5, broker_key(1), encode_registration(REGISTRATION)),
        (5, live_key(1), encode_live(LIFE)),
        (6, fence_key(1), encode_fence(5)),
        (7, draining_key(1), encode_draining(5)),
    ]
    before = image_of(*keys).brokers[1]
    assert (before.is_fenced, before.is_live, before.is_draining) == (False, True, True)
    new = BrokerRegistration(UUID(int=6), {})
    after = image_of(*keys, (9, broker_key(1), encode_registration(new))).brokers[1]
    assert (after.epoch, after.is_fenced, after.is_live, after.is_draining) == (
        *(9, True, False, False),
    )


def test_a_broker_without_its_lease_stays_what_it_is() -> None:
    """It is the controller that fences it; until then it may be back."""
    keys = [
        (5, broker_key(1), encode_registration(REGISTRATION)),
        (5, live_key(1), encode_live(LIFE)),
        (6, fence_key(1), encode_fence(5)),
        (7, live_key(1), None),
    ]
    gone = image_of(*keys).brokers[1]
    assert (gone.is_live, gone.is_fenced, gone.epoch) == (False, False, 5)
    back = image_of(*keys, (8, live_key(1), encode_live(LIFE))).brokers[1]
    assert (back.is_live, back.is_fenced, back.epoch) == (True, False, 5)


def test_the_order_of_keys_does_not_matter() -> None:
    keys = [
        (5, broker_key(1), encode_registration(REGISTRATION)),
        (5, live_key(1), encode_live(LIFE)),
        (5, fence_key(1), encode_fence(5)),
    ]
    images = {repr(image_of(*order).brokers[1]) for order in permutations(keys)}
    assert len(images) == 1


def test_a_registration_that_is_taken_away_takes_the_broker_with_it() -> None:
    registered = (5, broker_key(1), encode_registration(REGISTRATION))
    image = image_of(registered, (6, broker_key(1), None))
    assert (image.brokers, image.facts) == ({}, {})


def test_the_controller_and_its_epoch_are_those_of_its_key() -> None:
    """The epoch is the revision that made the key, not the one that changed it last."""
    image = image_of((5, CONTROLLER_KEY, encode_controller(2, 5)))
    assert (image.controller_id, image.controller_epoch) == (2, 5)
    again = image.updated([(CONTROLLER_KEY, encode_controller(2, 5))], 6)
    assert (again.controller_id, again.controller_epoch) == (2, 5)
    none = again.updated([(CONTROLLER_KEY, None)], 7)
    assert (none.controller_id, none.controller_epoch) == (-1, 0)
    next_one = none.updated([(CONTROLLER_KEY, encode_controller(3, 5))], 8)
    assert (next_one.controller_id, next_one.controller_epoch) == (3, 8)
    assert decode_controller(encode_controller(3, 5)) == 3


def test_an_image_that_is_loaded_has_the_epochs_of_one_that_followed() -> None:
    """They are in the keys' revisions, not in their values."""
    keys = [
        KeyValue(broker_key(1), encode_registration(REGISTRATION), 3, 5, 2),
        KeyValue(CONTROLLER_KEY, encode_controller(1, 5), 6, 9, 3),
        KeyValue(fence_key(1), encode_fence(5), 7, 7, 1),
        KeyValue(live_key(1), encode_live(LIFE), 8, 8, 1),
    ]
    image = ClusterImage.loaded(keys, 12)
    broker = image.brokers[1]
    assert (broker.epoch, broker.is_fenced, broker.is_live) == (5, False, True)
    assert (image.controller_id, image.controller_epoch, image.revision) == (1, 6, 12)
