"""DescribeConfigs (API key 32), versions 1 to 4.

Behaviour:
- Topics, this broker (its id), the default of all brokers (an empty name), groups, client metrics
  subscriptions; loggers are an empty list, there are none to set by name.
- Entries come in order of name; a list of keys in the request chooses among them, null or empty
  means all. Values of secrets are null. Documentation is our own text.
- Topics and brokers that do not exist are refused; groups and subscriptions need not exist, they
  have their defaults.
- A resource that is listed several times with the same keys is answered once: all configs of a
  broker are 10 KB, which a few bytes could request many times.
- A resource type Kafka does not know makes the whole request INVALID_REQUEST.

Versions:
- 1  source and synonyms                       KIP-226
- 3  type and documentation                    KIP-569
- 4  flexible
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.controller.configs.config_descriptions import ConfigDescriptions, ConfigEntry
from broker.controller.images.cluster_image import ResourceType
from broker.controller.images.topic_names import name_problem
from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.DESCRIBE_CONFIGS
VERSIONS = (1, 4)


RESOURCES_PER_SLICE = 50
"""Resources described before yielding to the event loop: each costs a tenth of a millisecond."""


async def handle(
    services: "Services", context: "RequestContext", request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Describe each resource by itself."""
    unknown = [
        r for r in request.resources if r.resource_type not in ResourceType.__members__.values()
    ]
    if unknown:
        message = (
            f"Unexpected resource type {unknown[0].resource_type} "
            f"for resource {unknown[0].resource_name}"
        )
        return DescribeConfigsResponse(
            results=[
                _failure(resource, ApiError(ErrorCode.INVALID_REQUEST, message))
                for resource in request.resources
            ]
        )
    image = services.controller.image
    descriptions = ConfigDescriptions(services.settings, image)
    results = []
    known: dict[tuple[int, str], Sequence[ConfigEntry] | ApiError] = {}
    answered = set()
    for count, resource in enumerate(request.resources, 1):
        if count % RESOURCES_PER_SLICE == 0:
            await asyncio.sleep(0)
        name = (resource.resource_type, resource.resource_name)
        asked = (name, frozenset(resource.configuration_keys or ()))
        if asked in answered:
            continue
        answered.add(asked)
        if name not in known:
            try:
                known[name] = _entries(descriptions, image, resource, services.settings.node_id)
            except ApiError as error:
                known[name] = error
        entries = known[name]
        if isinstance(entries, ApiError):
            results.append(_failure(resource, entries))
        else:
            results.append(_result(resource, entries, request))
    return DescribeConfigsResponse(results=results)


def _entries(
    descriptions: ConfigDescriptions,
    image: "ClusterImage",
    resource: DescribeConfigsResource,
    node_id: int,
) -> Sequence[ConfigEntry]:
    name = resource.resource_name
    match ResourceType(resource.resource_type):
        case ResourceType.TOPIC:
            problem = name_problem(name)
            if problem is not None:
                raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
            topic = image.topics.get(name)
            if topic is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return descriptions.topic(topic)
        case ResourceType.BROKER:
            if not name:
                return descriptions.all_brokers()
            if _broker_id(name) != node_id:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"Unexpected broker id, expected {node_id} or empty string, "
                    f"but received {name}",
                )
            return descriptions.broker()
        case ResourceType.BROKER_LOGGER:
            if not name:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
            if _broker_id(name) != node_id:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"Unexpected broker id, expected {node_id} but received {name}",
                )
            return ()
        case ResourceType.CLIENT_METRICS:
            if not name:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    "Client metrics subscription name must not be empty",
                )
            return descriptions.client_metrics(name)
        case ResourceType.GROUP:
            if not name:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
            return descriptions.group(name)


def _broker_id(name: str) -> int:
    digits = name.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10):
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}"
        )
    return int(name)


def _result(
    resource: DescribeConfigsResource,
    entries: Sequence[ConfigEntry],
    request: DescribeConfigsRequest,
) -> DescribeConfigsResult:
    wanted = set(resource.configuration_keys or ())
    return DescribeConfigsResult(
        error_code=int(ErrorCode.NONE),
        # Not null, which Kafka never sends: some clients would not read it.
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[
            _config(entry, request) for entry in entries if not wanted or entry.name in wanted
        ],
    )


def _config(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=int(entry.source),
        is_sensitive=entry.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=s.name, value=s.value, source=int(s.source))
            for s in synonyms
        ],
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation else None,
    )


def _failure(resource: DescribeConfigsResource, error: ApiError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=int(error.code),
        error_message=error.message or error.code.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
