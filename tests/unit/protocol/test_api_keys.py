"""The table of APIs."""

from kio.schema.index import api_key_map

from protocol.api_keys import FIRST_FLEXIBLE_VERSION, ApiKey


def test_every_live_key_is_there() -> None:
    """0 to 92 without the four that died with ZooKeeper; named as kio names them."""
    assert {key.value for key in ApiKey} == set(range(93)) - {4, 5, 6, 7}
    assert {key.value: key.name.lower() for key in ApiKey} == dict(api_key_map)


def test_two_apis_never_became_flexible() -> None:
    """SaslHandshake and OffsetDelete."""
    assert set(ApiKey) - set(FIRST_FLEXIBLE_VERSION) == {
        ApiKey.SASL_HANDSHAKE,
        ApiKey.OFFSET_DELETE,
    }
