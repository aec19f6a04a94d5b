"""What tells of remote storage is not taken away while anything depends on it."""

from uuid import UUID

import pytest

from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.images.topic_names import BROKERS_OWN_TOPICS, REMOTE_LOG_METADATA
from broker.controller.topics.tiered_topics import (
    check_may_be_tiered,
    check_metadata_settings,
    check_metadata_stays,
    own_overrides,
    shown,
    tiered_topics,
)
from broker.controller.topics.topics import REMOTE_LOG_METADATA_CONFIGS
from broker.runtime.errors import ApiError
from config.errors import InvalidConfigError
from protocol.error_codes import ErrorCode

TIERED = {"remote.storage.enable": "true"}


def image(
    topics: dict[str, dict[str, str]], deleted: frozenset[UUID] = frozenset()
) -> ClusterImage:
    found = [
        TopicImage(name, UUID(int=number), (), overrides, False)
        for number, (name, overrides) in enumerate(topics.items(), 5)
    ]
    by_id = {topic.topic_id: topic for topic in found}
    by_name = {topic.name: topic for topic in found}
    return ClusterImage("c", 1, {}, by_name, by_id, 1, deleted_topics=deleted)


@pytest.mark.parametrize("name", sorted(BROKERS_OWN_TOPICS))
def test_own_topics_are_never_tiered(name: str) -> None:
    with pytest.raises(InvalidConfigError, match=name):
        check_may_be_tiered(name, TIERED, {})
    check_may_be_tiered(name, TIERED, TIERED)
    assert own_overrides(name, TIERED | {"segment.ms": "1"}) == {"segment.ms": "1"}
    assert tiered_topics(image({name: TIERED, "t": TIERED, "u": {}})) == ["t"]


def test_other_topics_have_what_was_set() -> None:
    check_may_be_tiered("t", TIERED, {})
    assert own_overrides("t", TIERED) == TIERED


@pytest.mark.parametrize(
    ("topics", "deleted", "reason"),
    [
        ({"t": TIERED}, frozenset(), "1: t"),
        ({"t": {"remote.log.delete.on.disable": "true"}}, frozenset(), "1: t"),
        ({}, frozenset({UUID(int=9)}), "still being removed"),
    ],
)
def test_the_metadata_stays_while_anything_depends_on_it(
    topics: dict[str, dict[str, str]], deleted: frozenset[UUID], reason: str
) -> None:
    with pytest.raises(ApiError) as caught:
        check_metadata_stays(image(topics, deleted), REMOTE_LOG_METADATA, "be deleted")
    assert caught.value.code is ErrorCode.POLICY_VIOLATION
    assert "may not be deleted" in str(caught.value.message)
    assert reason in str(caught.value.message)
    check_metadata_stays(image(topics, deleted), "t", "be deleted")
    check_metadata_stays(image({"u": {}}), REMOTE_LOG_METADATA, "be deleted")


@pytest.mark.parametrize("key", REMOTE_LOG_METADATA_CONFIGS)
def test_the_metadata_keeps_the_settings_that_keep_it(key: str) -> None:
    own = dict(REMOTE_LOG_METADATA_CONFIGS)
    check_metadata_settings(REMOTE_LOG_METADATA, own | {"segment.ms": "5"}, own)
    for new in (own | {key: "1x"}, {name: own[name] for name in own if name != key}):
        with pytest.raises(InvalidConfigError, match=key):
            check_metadata_settings(REMOTE_LOG_METADATA, new, own)
        # What is wrong already may be left so, and be put right.
        check_metadata_settings(REMOTE_LOG_METADATA, new, new)
        check_metadata_settings(REMOTE_LOG_METADATA, own, new)
        check_metadata_settings("t", new, own)


def test_of_many_names_some_are_shown() -> None:
    assert shown(f"t{number}" for number in range(7)) == "7: t0, t1, t2, t3, t4"
