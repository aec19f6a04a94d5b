"""DeleteTopics, by name and by id."""

from uuid import UUID

import pytest

from broker.controller.topics.topics import NewTopic
from broker.handlers import delete_topics
from protocol.error_codes import ErrorCode
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call, versions_of

NIL = UUID(int=0)


@pytest.mark.parametrize("version", versions_of(delete_topics)[:-1])
async def test_topics_by_name(version: int) -> None:
    controller = await open_controller()
    await controller.create_topics([NewTopic(n, 1, 1) for n in ("a", "b", "c")])
    request = DeleteTopicsRequest(timeout_ms=1_000, topic_names=["a", "none", "b", "b"])
    response = await call(delete_topics, services_of(controller), request, version)
    assert {(t.name, ErrorCode(t.error_code)) for t in response.responses} == {
        ("a", ErrorCode.NONE),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("b", ErrorCode.INVALID_REQUEST),
    }
    assert len(response.responses) == 3
    assert set(controller.image.topics) == {"b", "c"}


async def test_topics_by_id_and_name() -> None:
    """Every way to ask, and every way to ask wrongly."""
    controller = await open_controller()
    await controller.create_topics([NewTopic(n, 1, 1) for n in "abcdef"])
    ids = {name: topic.topic_id for name, topic in controller.image.topics.items()}
    request = DeleteTopicsRequest(
        timeout_ms=1_000,
        topics=[
            DeleteTopicState(topic_id=ids["a"]),
            DeleteTopicState(name="b"),
            DeleteTopicState(name="c", topic_id=ids["c"]),
            DeleteTopicState(topic_id=ids["d"]),
            DeleteTopicState(topic_id=ids["d"]),
            DeleteTopicState(topic_id=ids["e"]),
            DeleteTopicState(name="e"),
            DeleteTopicState(),
            DeleteTopicState(topic_id=UUID(int=77)),
        ],
    )
    response = await call(delete_topics, services_of(controller), request, 6)
    assert {(t.name, t.topic_id, ErrorCode(t.error_code)) for t in response.responses} == {
        ("a", ids["a"], ErrorCode.NONE),
        ("b", ids["b"], ErrorCode.NONE),
        ("c", ids["c"], ErrorCode.INVALID_REQUEST),
        (None, ids["d"], ErrorCode.INVALID_REQUEST),
        ("e", ids["e"], ErrorCode.INVALID_REQUEST),
        (None, NIL, ErrorCode.INVALID_REQUEST),
        (None, UUID(int=77), ErrorCode.UNKNOWN_TOPIC_ID),
    }
    assert set(controller.image.topics) == {"c", "d", "e", "f"}
    messages = {t.error_message for t in response.responses}
    assert "Duplicate topic id." in messages
    assert "The provided topic name maps to an ID that was already supplied." in messages


@pytest.mark.parametrize("first", [0, 1, 2])
async def test_an_id_that_is_refused_goes_by_no_name(first: int) -> None:
    """The topic was deleted, beside a refusal for its id."""
    controller = await open_controller()
    (created,) = await controller.create_topics([NewTopic("a", 1, 1)])
    assert created.topic is not None
    asked = [DeleteTopicState(topic_id=created.topic.topic_id) for _ in range(2)]
    asked.insert(first, DeleteTopicState(name="a"))
    request = DeleteTopicsRequest(timeout_ms=1_000, topics=asked)
    response = await call(delete_topics, services_of(controller), request, 6)
    assert {(t.name, t.topic_id, ErrorCode(t.error_code)) for t in response.responses} == {
        (None, created.topic.topic_id, ErrorCode.INVALID_REQUEST),
        ("a", created.topic.topic_id, ErrorCode.INVALID_REQUEST),
    }
    assert set(controller.image.topics) == {"a"}


@pytest.mark.parametrize("version", versions_of(delete_topics))
async def test_deletion_can_be_disabled(version: int) -> None:
    """Every topic is refused; before version 3 clients do not know the code for it."""
    controller = await open_controller(delete_topic_enable=False)
    await controller.create_topics([NewTopic("a", 1, 1)])
    request = (
        DeleteTopicsRequest(timeout_ms=1_000, topics=[DeleteTopicState(name="a")])
        if version == 6
        else DeleteTopicsRequest(timeout_ms=1_000, topic_names=["a"])
    )
    response = await call(delete_topics, services_of(controller), request, version)
    expected = ErrorCode.INVALID_REQUEST if version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
    assert [(t.name, t.error_code) for t in response.responses] == [("a", expected)]
    assert set(controller.image.topics) == {"a"}


async def test_internal_topics_may_be_deleted() -> None:
    controller = await open_controller()
    await controller.ensure_internal_topic("__consumer_offsets")
    request = DeleteTopicsRequest(timeout_ms=1_000, topic_names=["__consumer_offsets"])
    response = await call(delete_topics, services_of(controller), request, 5)
    assert response.responses[0].error_code == ErrorCode.NONE
    assert controller.image.topics == {}
