"""ShareAcknowledge (API key 79), versions 1 to 2.

Behaviour:
- Acknowledgements of share groups' members, written before they are answered. Every partition has
  its own error code: INVALID_RECORD_STATE if the member no longer has the records.
- Continues a share session that ShareFetch has opened; with the last epoch it ends it, and the
  member's records are released.
- Who does not lead a partition names the leader, and where it listens.

Versions:
- 1   stable in Kafka 4.1                          KIP-932
- 2   locks can be renewed                         KIP-1222
"""

from typing import TYPE_CHECKING
from uuid import UUID

from broker.coordinator.persister import SharePartitionKey
from broker.replicas.leader_hints import FETCH_CODES
from broker.requests.answer import Answer
from broker.runtime.errors import ApiError
from broker.share.delivery.acknowledgements import Acknowledgements, is_member_id
from broker.share.delivery.sessions import FINAL_EPOCH, INITIAL_EPOCH, SessionKey
from broker.share.delivery.share_partitions import Outcomes
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.share.services import ShareServices
    from protocol.hot.wire import NodeEndpoint as HintedEndpoint

API_KEY = ApiKey.SHARE_ACKNOWLEDGE
VERSIONS = (1, 2)

NO_ERROR = (0, 0)
UNKNOWN = (-1, -1)
"""Leader id and epoch of an answer that names no leader."""


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
        results = _results(keys, {**outcomes, **acknowledgements.decided})
        hints = share.leader_hints
        endpoints: list[HintedEndpoint] = []
        if hints is not None:
            named = ((topic_id.bytes, of_topic) for topic_id, of_topic in results.items())
            endpoints = hints.add(named, FETCH_CODES, context.connection.listener_name)
        answer(_response(results, endpoints, lock_ms))

    share.acknowledge(member_id, acknowledgements.batches, done)
    return answer.result()


class _Result:
    """What became of a partition's acknowledgements; `current_leader`: see `LeaderHints`."""

    __slots__ = ("current_leader", "error_code", "index")

    def __init__(self, index: int, code: ErrorCode) -> None:
        self.index = index
        self.error_code: int = code
        # With an error a client uses the current leader of the response: none, then.
        self.current_leader: tuple[int, int] | None = NO_ERROR if not code else UNKNOWN


def _results(keys: list[SharePartitionKey], outcomes: Outcomes) -> dict[UUID, list[_Result]]:
    results: dict[UUID, list[_Result]] = {}
    for key in keys:
        results.setdefault(key.topic_id, []).append(_Result(key.partition, outcomes[key]))
    return results


def _response(
    results: dict[UUID, list[_Result]], endpoints: "list[HintedEndpoint]", lock_ms: int
) -> ShareAcknowledgeResponse:
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=lock_ms,
        responses=[
            ShareAcknowledgeTopicResponse(
                topic_id=topic_id, partitions=[_partition(result) for result in of_topic]
            )
            for topic_id, of_topic in results.items()
        ],
        node_endpoints=[
            NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in endpoints
        ],
    )


def _partition(result: _Result) -> PartitionData:
    code = ErrorCode(result.error_code)
    leader_id, leader_epoch = result.current_leader or UNKNOWN
    return PartitionData(
        partition_index=result.index,
        error_code=code,
        error_message=None if code is ErrorCode.NONE else code.message,
        current_leader=LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch),
    )
