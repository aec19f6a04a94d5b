"""Terms of replication: Kafka's defaults, and nobody joins an ISR unless the image says so."""

from broker.replication.terms import ReplicationTerms


def test_without_an_image_no_broker_is_live() -> None:
    terms = ReplicationTerms()
    assert terms.live_epoch(1) is None
    assert (terms.lag_time_max_ms, terms.fetch_wait_max_ms) == (30_000.0, 500.0)
