"""Which resources of a request may be changed at all."""

import pytest

from broker.controller.configs.config_requests import (
    RequestedChange,
    RequestedResource,
    resources_to_change,
)
from broker.controller.images.cluster_image import ConfigResource, ResourceType
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND = 0, 1, 2


def judge(*resources: RequestedResource, incremental: bool = True) -> list[object]:
    judged = resources_to_change(resources, nodes=(1,), incremental=incremental)
    return [(v.code, v.message) if isinstance(v, ApiError) else v for v in judged]


def test_good_resources_pass_whatever_the_others_are() -> None:
    assert judge(
        RequestedResource(TOPIC, "t", [RequestedChange("a", "1")]),
        RequestedResource(3, "x", []),
        RequestedResource(BROKER, "", [RequestedChange("a", None, DELETE)]),
    ) == [
        ConfigResource(ResourceType.TOPIC, "t"),
        (ErrorCode.INVALID_REQUEST, "Unknown resource type 3"),
        ConfigResource(ResourceType.BROKER, ""),
    ]


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        (
            RequestedResource(TOPIC, "t", [RequestedChange("a", "1"), RequestedChange("a", "2")]),
            "Error due to duplicate config keys",
        ),
        (
            RequestedResource(
                TOPIC, "t", [RequestedChange("a", None), RequestedChange("b", None, APPEND)]
            ),
            "Null value not supported for : a, b",
        ),
        (
            RequestedResource(TOPIC, "t", [RequestedChange("a", "1", 9)]),
            "Unknown operations type 9",
        ),
        (
            RequestedResource(BROKER, "2", []),
            "Unexpected broker id, expected 1, but received 2",
        ),
        (RequestedResource(LOGGER, "", []), "Node id must be an integer, but it is: "),
        (
            RequestedResource(LOGGER, "1", [RequestedChange("root", "INFO", APPEND)]),
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
    ],
)
def test_refused_resources(resource: RequestedResource, message: str) -> None:
    """Kafka's sentences, all INVALID_REQUEST."""
    assert judge(resource) == [(ErrorCode.INVALID_REQUEST, message)]


def test_resource_named_twice_is_refused_both_times() -> None:
    both = judge(RequestedResource(TOPIC, "t", []), RequestedResource(TOPIC, "t", []))
    assert both == [(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")] * 2


def test_loggers_by_name_do_not_exist() -> None:
    change = RequestedChange("kafka.server", "DEBUG")
    assert judge(RequestedResource(LOGGER, "1", [change])) == [
        (ErrorCode.INVALID_CONFIG, "Logger kafka.server does not exist!")
    ]
    assert judge(RequestedResource(LOGGER, "1", [])) == [
        ConfigResource(ResourceType.BROKER_LOGGER, "1")
    ]


def test_replacing_request_knows_no_loggers() -> None:
    assert judge(RequestedResource(LOGGER, "1", []), incremental=False) == [
        (ErrorCode.INVALID_REQUEST, "Unknown resource type 8")
    ]
