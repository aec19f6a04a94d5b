"""Which targets have changed, and the topics that members subscribe to."""

from uuid import UUID

from broker.groups.consumer.records import CONSUMER_GROUP_RECORDS
from broker.groups.modern.assignment import Assignment
from broker.groups.modern.targets import SubscribedTopics, changed_targets
from tests.fakes.broker.offsets_partition import FakeController, topic_image

A = UUID(int=1)


def test_only_what_differs_or_is_new_has_a_record() -> None:
    before: dict[str, Assignment] = {"same": {A: (0,)}, "other": {A: (1,)}, "left": {A: (2,)}}
    after: dict[str, Assignment] = {"same": {A: (0,)}, "other": {A: (1, 2)}, "new": {}}
    changed = changed_targets("g", before, after, CONSUMER_GROUP_RECORDS)
    assert [(one.member_id, one.assignment) for one in changed] == [
        ("other", {A: (1, 2)}),
        ("new", {}),
    ]
    assert changed[1].record == CONSUMER_GROUP_RECORDS.target("g", "new", {})


def test_topics_that_do_not_exist_are_left_out() -> None:
    image = FakeController(topic_image("a", 1, 3), topic_image("b", 2, 1)).image
    subscribed = SubscribedTopics(image)
    a, b = (image.topics[name].topic_id for name in "ab")
    assert subscribed.ids_of(frozenset({"a", "nowhere"})) == {a}
    assert subscribed.topics.keys() == {a}
    assert subscribed.ids_of(frozenset({"a", "b"})) == {a, b}
    assert subscribed.topics.keys() == {a, b}
    assert subscribed.ids_of(frozenset()) == frozenset()
