"""What fetchers are given of a broker's settings."""

from broker.lifecycle.replication import fetcher_settings, receive_buffer_bytes
from config.broker import BrokerConfig


def test_fetchers_have_the_settings_of_replication() -> None:
    """Each by its own name."""
    config = BrokerConfig().replace(
        replica_fetch_wait_max_ms=1,
        replica_fetch_min_bytes=2,
        replica_fetch_max_bytes=3,
        replica_fetch_response_max_bytes=4,
        replica_fetch_backoff_ms=5,
        replica_socket_timeout_ms=6,
        num_replica_fetchers=7,
    )
    made = fetcher_settings(config)
    assert (made.wait_max_ms, made.min_bytes, made.max_bytes) == (1, 2, 3)
    assert (made.response_max_bytes, made.backoff_ms) == (4, 5)
    assert (made.socket_timeout_ms, made.fetchers) == (6, 7)


def test_kafkas_receive_buffer_is_left_to_the_system() -> None:
    """Any other size is what an operator has asked for."""
    assert receive_buffer_bytes(BrokerConfig().replica_socket_receive_buffer_bytes) == -1
    assert receive_buffer_bytes(1 << 20) == 1 << 20
    assert receive_buffer_bytes(0) == 0
