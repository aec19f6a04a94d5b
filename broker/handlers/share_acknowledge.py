"""ShareAcknowledge (API key 79), versions 1 to 2.

Behaviour:
- Acknowledgements of share groups' members, written before they are answered. Every partition has
  its own error code: INVALID_RECORD_STATE if the member no longer has the records.
- Continues a share session that ShareFetch has opened; with the last epoch it ends it, and the
  member's records are released.

Versions:
- 1   stable in Kafka 4.1                          KIP-932
- 2   locks can be renewed                         KIP-1222
"""

from typing import TYPE_CHECKING
from uuid import UUID

from broker.coordinator.persister import SharePartitionKey
from broker.requests.answer import Answer
from broker.runtime.errors import ApiError
from broker.share.delivery.acknowledgements import Acknowledgements, is_member_id
from broker.share.delivery.sessions import FINAL_EPOCH, INITIAL_EPOCH, SessionKey
from broker.share.delivery.share_partitions import Outcomes
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.share.services import ShareServices

API_KEY = ApiKey.SHARE_ACKNOWLEDGE
VERSIONS = (1, 2)


def handle(
    services: "ShareServices", context: "RequestContext", request: ShareAcknowledgeRequest
) -> "ShareAcknowledgeResponse | Answer[ShareAcknowledgeResponse]":
    """Apply the acknowledgements, and answer when they are written."""
    share = services.share
    if not share.is_enabled:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    group_id, member_id, epoch = request.group_id, request.member_id, request.share_session_epoch
    if not group_id or member_id is None or not is_member_id(member_id):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    if epoch == INITIAL_EPOCH:
        raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    session_key = SessionKey(group_id, member_id)
    share.sessions.resume(session_key, epoch)
    acknowledgements = Acknowledgements(context.api_version, is_renewal=request.is_renew_ack)
    keys = []
    known: set[SharePartitionKey] = set()
    for topic in request.topics:
        for partition in topic.partitions:
            key = SharePartitionKey(group_id, topic.topic_id, partition.partition_index)
            if key in known:
                continue
            known.add(key)
            if partition.acknowledgement_batches:
                keys.append(key)
            acknowledgements.add(key, partition.acknowledgement_batches)
    answer: Answer[ShareAcknowledgeResponse] = Answer()
    lock_ms = share.group_configs(group_id).record_lock_duration_ms

    def done(outcomes: Outcomes) -> None:
        if epoch == FINAL_EPOCH:
            share.release_session(session_key)
        answer(_response(keys, {**outcomes, **acknowledgements.decided}, lock_ms))

    share.acknowledge(member_id, acknowledgements.batches, done)
    return answer.result()


def _response(
    keys: list[SharePartitionKey], outcomes: Outcomes, lock_ms: int
) -> ShareAcknowledgeResponse:
    topics: dict[UUID, list[PartitionData]] = {}
    for key in keys:
        code = outcomes[key]
        topics.setdefault(key.topic_id, []).append(
            PartitionData(
                partition_index=key.partition,
                error_code=code,
                error_message=None if code is ErrorCode.NONE else code.message,
                # With an error a client uses the current leader of the response: none, then.
                current_leader=LeaderIdAndEpoch(
                    leader_id=0 if code is ErrorCode.NONE else -1,
                    leader_epoch=0 if code is ErrorCode.NONE else -1,
                ),
            )
        )
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=lock_ms,
        responses=[
            ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ],
    )
