"""Metadata (API key 3), versions 0 to 13.

Behaviour:
- Topics null: all of them (version 0: an empty list says so). Empty from version 1: none.
- An unknown name is created when the client allows it and `auto.create.topics.enable` is on. The
  answer does not wait for that: it is UNKNOWN_TOPIC_OR_PARTITION, as in Kafka, and the client
  retries. So a request for a deleted topic gets that error, even if it creates the topic again.
- An illegal name is INVALID_TOPIC_EXCEPTION. A topic that cannot be created stays unknown, as in
  Kafka, and the reason is logged.
- With any topic id in the request the names are ignored, as in Kafka.
- Endpoints are those of the listener the client has connected to.
- A broker that may have been replaced, and cannot hear of it, does not name itself
  (`broker.replication.doubt_watch`): its clients look elsewhere for the leaders it had.
- A broker that was fenced a moment ago is named still (`LingeringBrokers`), as no partition's.
- Responses with all topics are cached encoded until the cluster changes.

Versions:
- 1   null for all topics; controller, racks, internal topics
- 2   cluster id
- 4   the client decides whether topics may be created
- 5   offline replicas
- 7   leader epochs                                KIP-320
- 8   authorized operations                        KIP-430
- 9   flexible
- 10  topic ids in the response                    KIP-516
- 11  authorized operations of the cluster moved to DescribeCluster   KIP-700
- 12  topics by id
- 13  error code at the top
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.controller.authorized_operations import (
    CLUSTER_OPERATIONS,
    NOT_ASKED,
    TOPIC_OPERATIONS,
)
from broker.controller.images.topic_names import INTERNAL_TOPICS, name_problem
from broker.controller.topics.topic_metadata import describe_brokers
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
    encode_response,
)
from protocol.primitives import NIL_UUID

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.controller.images.cluster_image import ClusterImage
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.METADATA
VERSIONS = (0, 13)


def handle(
    services: "Services", context: "RequestContext", request: MetadataRequest
) -> "MetadataResponse | bytes":
    """Answer at once; topics that are missing may be created afterwards."""
    controller = services.controller
    version = context.api_version
    if request.topics is None or (version == 0 and not request.topics):
        return _all_topics(controller, context, request)
    problem = _problem(request, version)
    if problem is not None:
        return _refusal(request, problem)
    if any(topic.topic_id != NIL_UUID for topic in request.topics):
        return _by_id(controller, context, request)
    names = list(dict.fromkeys(topic.name for topic in request.topics if topic.name is not None))
    response = _by_name(controller, context, request, names)
    if request.allow_auto_topic_creation and services.settings.auto_create_topics_enable:
        topics = controller.image.topics
        for name in names:
            if name not in topics and name_problem(name) is None:
                controller.auto_create(name)
    return response


def _problem(request: MetadataRequest, version: int) -> ErrorCode | None:
    for topic in request.topics or ():
        has_id = topic.topic_id != NIL_UUID
        if version < 12 and (topic.name is None or has_id):
            return ErrorCode.INVALID_REQUEST
        if topic.name is None and not has_id:
            return ErrorCode.INVALID_REQUEST
    return None


def _refusal(request: MetadataRequest, error: ErrorCode) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(
                error_code=int(error), name=topic.name or "", topic_id=topic.topic_id
            )
            for topic in request.topics or ()
        ],
        error_code=int(error),
    )


def _all_topics(
    controller: "Controller", context: "RequestContext", request: MetadataRequest
) -> bytes:
    image = controller.image
    listener = context.connection.listener_name
    version = context.api_version
    with_topic = version >= 8 and request.include_topic_authorized_operations
    with_cluster = 8 <= version <= 10 and request.include_cluster_authorized_operations
    lingering = tuple(broker.node_id for broker in controller.lingering.of(image))
    is_isolated = controller.is_isolated()
    key = (API_KEY, version, listener, with_topic, with_cluster, lingering, is_isolated)
    body = controller.response_cache.get(image, key)
    if body is None:
        topics = controller.topic_metadata.all_topics(
            image, listener, version, TOPIC_OPERATIONS if with_topic else NOT_ASKED
        )
        response = _response(controller, image, context, request, topics)
        body = encode_response(response, version)
        controller.response_cache.put(image, key, body)
    return body


def _by_id(
    controller: "Controller", context: "RequestContext", request: MetadataRequest
) -> MetadataResponse:
    image = controller.image
    topics = []
    for topic_id in dict.fromkeys(topic.topic_id for topic in request.topics or ()):
        if topic_id == NIL_UUID:
            continue
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            topics.append(
                MetadataResponseTopic(
                    error_code=int(ErrorCode.UNKNOWN_TOPIC_ID), name=None, topic_id=topic_id
                )
            )
        else:
            topics.append(_topic(controller, image, context, request, topic.name))
    return _response(controller, image, context, request, topics)


def _by_name(
    controller: "Controller",
    context: "RequestContext",
    request: MetadataRequest,
    names: Sequence[str],
) -> MetadataResponse:
    image = controller.image
    topics = []
    for name in names:
        if name in image.topics and not controller.is_creating(name):
            topics.append(_topic(controller, image, context, request, name))
            continue
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if name_problem(name) is not None:
            error = ErrorCode.INVALID_TOPIC_EXCEPTION
        topics.append(
            MetadataResponseTopic(
                error_code=int(error),
                name=name,
                is_internal=name in INTERNAL_TOPICS,
                topic_authorized_operations=_operations(request),
            )
        )
    return _response(controller, image, context, request, topics)


def _topic(
    controller: "Controller",
    image: "ClusterImage",
    context: "RequestContext",
    request: MetadataRequest,
    name: str,
) -> MetadataResponseTopic:
    return controller.topic_metadata.topic(
        image,
        image.topics[name],
        context.connection.listener_name,
        context.api_version,
        _operations(request),
    )


def _operations(request: MetadataRequest) -> int:
    """What may be done with a topic, also with one that there is not (yet)."""
    return TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED


def _response(
    controller: "Controller",
    image: "ClusterImage",
    context: "RequestContext",
    request: MetadataRequest,
    topics: list[MetadataResponseTopic],
) -> MetadataResponse:
    asked = context.api_version <= 10 and request.include_cluster_authorized_operations
    brokers = describe_brokers(
        image, context.connection.listener_name, controller.lingering.of(image)
    )
    if controller.is_isolated():
        own_id = controller.settings.node_id
        brokers = [broker for broker in brokers if broker.node_id != own_id]
    return MetadataResponse(
        brokers=brokers,
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
        cluster_authorized_operations=CLUSTER_OPERATIONS if asked else NOT_ASKED,
    )
