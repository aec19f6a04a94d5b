"""What is made of kio's types."""

import pytest

from protocol.codegen.schema import Api, Field, Struct, load


@pytest.fixture(scope="module")
def apis() -> dict[str, Api]:
    return {api.name: api for api in load()}


def field(struct: Struct, name: str) -> Field:
    return next(each for each in struct.fields if each.name == name)


def test_every_live_api_is_there(apis: dict[str, Api]) -> None:
    """79: those of the KRaft quorum are left out; each has as many request as response versions."""
    assert len(apis) == 79
    assert all(api.requests.keys() == api.responses.keys() for api in apis.values())


def test_times_are_milliseconds_by_name(apis: dict[str, Api]) -> None:
    """Kio drops the suffix that Kafka's names have."""
    request = apis["join_group"].requests[9]
    assert field(request, "session_timeout_ms").type == "int32"
    assert field(request, "rebalance_timeout_ms").default == -1
    partition = apis["produce"].responses[9].fields[0].struct
    assert partition is not None
    inner = partition.fields[1].struct
    assert inner is not None
    assert field(inner, "log_append_time_ms").default == -1


def test_enums_and_nominal_types_are_plain(apis: dict[str, Api]) -> None:
    """An error code is an int16, a broker id an int32, a group id a string."""
    response = apis["find_coordinator"].responses[2]
    assert field(response, "error_code").type == "int16"
    assert field(response, "node_id").type == "int32"
    assert field(apis["heartbeat"].requests[4], "group_id").type == "string"


def test_no_uuid_is_the_nil_one_and_not_null(apis: dict[str, Api]) -> None:
    """Kio says None for it."""
    topic = apis["metadata"].requests[12].fields[0].struct
    assert topic is not None
    assert not field(topic, "topic_id").nullable
    assert field(topic, "name").nullable


def test_nulls_of_lists_and_structures(apis: dict[str, Api]) -> None:
    """Per version, as Kafka has them."""
    metadata = apis["metadata"].requests
    assert not field(metadata[0], "topics").nullable
    assert field(metadata[1], "topics").nullable
    assert field(apis["describe_topic_partitions"].requests[0], "cursor").nullable


def test_names_that_request_and_response_share_are_told_apart(apis: dict[str, Api]) -> None:
    """Only those get the message's name before them."""
    names = [
        {struct.name for struct in message.walk()}
        for message in (
            apis["describe_topic_partitions"].requests[0],
            apis["describe_topic_partitions"].responses[0],
        )
    ]
    assert "DescribeTopicPartitionsRequestCursor" in names[0]
    assert "DescribeTopicPartitionsResponseCursor" in names[1]
    assert "TopicRequest" in names[0]
    assert not names[0] & names[1]


def test_tags_are_ordered(apis: dict[str, Api]) -> None:
    """They must ascend on the wire."""
    response = apis["api_versions"].responses[4]
    assert [each.tag for each in response.tagged] == [0, 1, 2, 3]
    assert field(response, "finalized_features_epoch").default == -1
