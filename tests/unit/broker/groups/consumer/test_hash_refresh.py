"""Groups with so many topics that their hash is computed elsewhere."""

import pytest

from broker.groups.consumer import hash_refresh
from tests.fakes.broker.offsets_partition import topic_image
from tests.harness.consumer_groups import ConsumerHarness


@pytest.fixture
def h(monkeypatch: pytest.MonkeyPatch) -> ConsumerHarness:
    monkeypatch.setattr(hash_refresh, "INLINE_TOPICS_MAX", 1)
    return ConsumerHarness()


def expected(h: ConsumerHarness) -> int:
    return h.consumers.hashes.of_names(["foo", "bar"], h.image)


def test_first_epoch_is_followed_by_one_with_the_hash(h: ConsumerHarness) -> None:
    h.offload.hold = True
    h.enter("m1", topics=["foo", "bar"])
    assert h.consumer_group().metadata_hash == 0
    epoch = h.consumer_group().group_epoch
    h.offload.run_all()
    assert h.consumer_group().metadata_hash == expected(h)
    assert h.consumer_group().group_epoch == epoch + 1
    h.settle_members()
    assert h.owned("m1") == {"foo": [0, 1, 2, 3, 4, 5], "bar": [0, 1, 2]}
    h.check()


def test_change_of_a_topic_is_found_later(h: ConsumerHarness) -> None:
    h.enter("m1", topics=["foo", "bar"])
    h.settle_members()
    h.offload.hold = True
    h.set_topics(topic_image("foo", 1, 7), topic_image("bar", 2, 3))
    epoch = h.member("m1").member_epoch
    h.beat("m1", epoch)
    h.beat("m1", epoch)
    assert len(h.offload.waiting) == 1
    assert h.consumer_group().group_epoch == epoch
    h.offload.run_all()
    assert h.consumer_group().group_epoch == epoch + 1
    h.offload.hold = False
    h.settle_members()
    assert h.owned("m1")["foo"] == [0, 1, 2, 3, 4, 5, 6]
    h.check()


def test_topics_that_change_meanwhile_are_looked_at_again(h: ConsumerHarness) -> None:
    h.enter("m1", topics=["foo", "bar"])
    h.settle_members()
    h.offload.hold = True
    h.set_topics(topic_image("foo", 1, 7), topic_image("bar", 2, 3))
    h.beat("m1", h.member("m1").member_epoch)
    h.set_topics(topic_image("foo", 1, 8), topic_image("bar", 2, 3))
    h.offload.run_all()
    assert h.consumer_group().metadata_hash != expected(h)
    h.offload.run_all()
    assert h.consumer_group().metadata_hash == expected(h)


def test_topics_that_others_read_change_nothing(h: ConsumerHarness) -> None:
    h.enter("m1", topics=["foo", "bar"])
    h.settle_members()
    epoch = h.consumer_group().group_epoch
    h.set_topics(*h.image.topics.values(), topic_image("foobar", 3, 1))
    h.enter("m2", topics=["foo", "bar"])
    assert h.consumer_group().group_epoch == epoch + 1
    assert h.consumer_group().metadata_hash == expected(h)


def test_failure_is_tried_again_with_a_heartbeat(h: ConsumerHarness) -> None:
    h.enter("m1", topics=["foo", "bar"])
    h.settle_members()
    h.set_topics(topic_image("foo", 1, 7), topic_image("bar", 2, 3))
    h.offload.fail_with = MemoryError()
    h.beat("m1", h.member("m1").member_epoch)
    h.offload.fail_with = None
    h.settle_members()
    assert h.owned("m1")["foo"] == [0, 1, 2, 3, 4, 5, 6]


def test_group_that_is_gone_hears_nothing(h: ConsumerHarness) -> None:
    h.offload.hold = True
    h.enter("m1", topics=["foo", "bar"])
    h.consumers.close()
    batches = len(h.log.batches[0])
    h.offload.run_all()
    assert len(h.log.batches[0]) == batches
