"""Terms of replication: Kafka's defaults, and nobody joins an ISR unless the image says so."""

from broker.controller.images.broker_records import BrokerImage
from broker.replication.terms import ReplicationTerms


def test_without_an_image_no_broker_is_live() -> None:
    terms = ReplicationTerms()
    assert terms.live_epoch(1) is None
    assert terms.member_epoch(1) is None
    assert (terms.lag_time_max_ms, terms.fetch_wait_max_ms) == (30_000.0, 500.0)


def test_epochs_come_from_the_newest_image() -> None:
    brokers: dict[int, BrokerImage] = {}
    terms = ReplicationTerms()
    terms.look_up(1, lambda: brokers)
    assert terms.registered_epoch(2) is None
    brokers[2] = BrokerImage(2, {}, epoch=20)
    brokers[3] = BrokerImage(3, {}, epoch=30, is_fenced=True)
    brokers[4] = BrokerImage(4, {}, epoch=40, is_draining=True)
    brokers[5] = BrokerImage(5, {}, epoch=50, is_live=False)
    assert [terms.registered_epoch(node) for node in (2, 3, 4, 5)] == [20, 30, 40, 50]
    assert [terms.member_epoch(node) for node in (2, 3, 4, 5)] == [20, None, 40, None]
    assert [terms.live_epoch(node) for node in (2, 3, 4, 5)] == [20, None, None, None]


def test_a_broker_is_no_follower_of_itself() -> None:
    """A single node has no other: whoever claims to be one is refused."""
    terms = ReplicationTerms()
    terms.look_up(1, lambda: {1: BrokerImage(1, {})})
    assert terms.registered_epoch(1) is None
    assert terms.member_epoch(1) is None
    assert terms.live_epoch(1) == 0
