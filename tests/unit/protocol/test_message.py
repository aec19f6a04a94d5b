"""What all messages can do."""

import pytest

from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic


def test_messages_are_equal_by_value() -> None:
    """Within one class."""
    assert HeartbeatRequest(group_id="a") == HeartbeatRequest(group_id="a")
    assert HeartbeatRequest(group_id="a") != HeartbeatRequest(group_id="b")
    assert HeartbeatRequest() != HeartbeatResponse()
    assert HeartbeatRequest() != "HeartbeatRequest"


def test_messages_show_their_values() -> None:
    """Nested ones too."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    assert "name='a'" in repr(request)
    assert repr(HeartbeatResponse()) == "HeartbeatResponse(throttle_time_ms=0, error_code=0)"


def test_messages_cannot_be_hashed_and_have_no_other_attributes() -> None:
    """They are mutable records with slots."""
    with pytest.raises(TypeError):
        hash(HeartbeatResponse())
    with pytest.raises(AttributeError):
        HeartbeatResponse().throttle_time = 1  # type: ignore[attr-defined]  # that is the point


def test_lists_are_not_shared() -> None:
    """Every message gets a list of its own."""
    first, second = MetadataRequest(), MetadataRequest()
    assert first.topics is not None
    first.topics.append(MetadataRequestTopic())
    assert second.topics == []


def test_arguments_are_keyword_only() -> None:
    """Positions would change with Kafka's versions."""
    with pytest.raises(TypeError):
        HeartbeatRequest("group")  # type: ignore[call-arg]  # that is the point
