"""FindCoordinator (API key 10), versions 0 to 6.

Behaviour:
- A group's coordinator is the leader of its partition of `__consumer_offsets`, that of a
  transactional id the leader of its partition of `__transaction_state`. The first request creates
  the topic and is answered when it is there.
- A share-partition's coordinator is the leader of its partition of `__share_group_state`; its key
  is `group:topic id:partition`. INVALID_REQUEST for another.

Versions:
- 1   key type, error message, throttle time
- 3   flexible
- 4   several keys at once                         KIP-699
- 5   TRANSACTION_ABORTABLE                        KIP-890
- 6   share groups                                 KIP-932
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from broker.controller.images.topic_names import SHARE_GROUP_STATE
from broker.groups.coordinator import OFFSETS_TOPIC
from broker.runtime.errors import ApiError
from broker.transactions.coordinator.transaction_coordinator import TRANSACTION_TOPIC
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from storage.types.uuid_text import parse_uuid

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

logger = logging.getLogger(__name__)

API_KEY = ApiKey.FIND_COORDINATOR
VERSIONS = (0, 6)

GROUP = 0
TRANSACTION = 1
SHARE = 2

SHARE_FROM_VERSION = 6

TOPICS = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTION_TOPIC, SHARE: SHARE_GROUP_STATE}
"""The internal topic of each kind of coordinator."""


def handle(
    services: "Services", context: "RequestContext", request: FindCoordinatorRequest
) -> "FindCoordinatorResponse | asyncio.Future[FindCoordinatorResponse]":
    """Name the broker that coordinates each key."""
    topic = TOPICS.get(request.key_type)
    if request.key_type == SHARE and not any(map(_is_share_key, request.coordinator_keys)):
        # No valid key: no reason to create the topic.
        topic = None
    if topic is not None and topic not in services.controller.image.topics:
        return asyncio.ensure_future(_create_and_answer(services, context, request, topic))
    return _answer(services, context, request)


async def _create_and_answer(
    services: "Services", context: "RequestContext", request: FindCoordinatorRequest, topic: str
) -> FindCoordinatorResponse:
    try:
        if request.key_type == TRANSACTION:
            await services.transactions.ensure_topic()
        elif request.key_type == SHARE:
            await services.share_coordinator.ensure_topic()
        else:
            await services.groups.ensure_topic()
    except ApiError as error:
        # The client gets a retriable error; the cause is for the operator.
        logger.warning("internal topic cannot be created topic=%s error=%s", topic, error)
    return _answer(services, context, request)


def _answer(
    services: "Services", context: "RequestContext", request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    if context.api_version >= 4:
        return FindCoordinatorResponse(
            coordinators=[
                _coordinator(services, context, request.key_type, key)
                for key in request.coordinator_keys
            ]
        )
    found = _coordinator(services, context, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _coordinator(
    services: "Services", context: "RequestContext", key_type: int, key: str
) -> Coordinator:
    topic = TOPICS.get(key_type)
    if topic is None:
        return _refusal(key, ErrorCode.INVALID_REQUEST)
    if key_type == TRANSACTION:
        index = services.transactions.partition_for(key)
    elif key_type == SHARE:
        if context.api_version < SHARE_FROM_VERSION or not _is_share_key(key):
            return _refusal(key, ErrorCode.INVALID_REQUEST)
        index = services.share_coordinator.partition_for(key)
    else:
        index = services.groups.partition_for(key)
    image = services.controller.image
    partition = image.partition(topic, index)
    broker = None if partition is None else image.brokers.get(partition.leader)
    if broker is None:
        return _refusal(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    endpoint = broker.listeners.get(context.connection.listener_name)
    if endpoint is None:
        return _refusal(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(
        key=key,
        node_id=broker.node_id,
        host=endpoint.host,
        port=endpoint.port,
        error_code=ErrorCode.NONE,
        error_message=ErrorCode.NONE.name,
    )


def _is_share_key(key: str) -> bool:
    """Whether it names a share-partition; the group's id may have colons, too."""
    group_id, _, rest = key.rpartition(":")[0].rpartition(":")
    partition = key.rpartition(":")[2]
    if not group_id or not (partition.isascii() and partition.isdecimal()):
        return False
    try:
        parse_uuid(rest)
    except ValueError:
        return False
    return True


def _refusal(key: str, code: ErrorCode) -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=code, error_message=code.message
    )
