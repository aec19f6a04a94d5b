"""ElectLeaders (API key 43), versions 0 to 2.

Behaviour:
- Elects preferred leaders, or any replica where there is no leader (unclean: records may be lost).
- Without a list, all partitions: those that need no election are left out of their topic's result.
- Results come in the order of the request, one of each topic that it has, also of one that it has
  twice.
- The answer comes when the broker's image has the new leaders; `timeout_ms` is what the way to the
  controller may take. With 0 or less nothing is done, and all is REQUEST_TIMED_OUT, as Kafka's
  controller answers it.

Versions:
- 0   preferred leaders         KIP-183
- 1   unclean elections         KIP-460
- 2   flexible

Source: Kafka 4.2, ReplicationControlManager.java (electLeaders), ElectLeadersRequest.java.
"""

from typing import TYPE_CHECKING

from broker.controller.active.leader_requests import LeaderRequest, LeaderResult
from broker.controller.active.partition_change import Election
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.ELECT_LEADERS
VERSIONS = (0, 2)
FORWARDED = True

PREFERRED = 0
UNCLEAN = 1


async def handle(
    services: "Services", _context: "RequestContext", request: ElectLeadersRequest
) -> ElectLeadersResponse:
    """Elect leaders of the partitions that are named, or of all."""
    if request.topic_partitions is None:
        image = services.controller.image
        topics = [
            [LeaderRequest(topic.name, partition.index) for partition in topic.partitions]
            for topic in image.topics.values()
        ]
        names = list(image.topics)
    elif not request.topic_partitions:
        return ElectLeadersResponse()
    else:
        topics = [
            [LeaderRequest(topic.topic, index) for index in topic.partitions]
            for topic in request.topic_partitions
        ]
        names = [topic.topic for topic in request.topic_partitions]
    if request.timeout_ms <= 0:
        late = ErrorCode.REQUEST_TIMED_OUT
        return _refused(request, names, topics, late, late.message)
    if request.election_type not in (PREFERRED, UNCLEAN):
        text = f"Unknown election type {request.election_type}"
        return _refused(request, names, topics, ErrorCode.INVALID_REQUEST, text)
    election = Election.PREFERRED if request.election_type == PREFERRED else Election.UNCLEAN
    wanted = [one for of_topic in topics for one in of_topic]
    results = iter(await services.active_controller.elect_leaders(election, wanted))
    answered = [[next(results) for _ in of_topic] for of_topic in topics]
    if request.topic_partitions is None:
        answered = [
            [one for one in of_topic if one.error is not ErrorCode.ELECTION_NOT_NEEDED]
            for of_topic in answered
        ]
    return ElectLeadersResponse(replica_election_results=_by_topic(names, answered))


def _refused(
    request: ElectLeadersRequest,
    names: list[str],
    topics: list[list[LeaderRequest]],
    code: ErrorCode,
    text: str,
) -> ElectLeadersResponse:
    """The same answer for all that was asked for."""
    refused = [[LeaderResult(one, code, text) for one in of_topic] for of_topic in topics]
    return ElectLeadersResponse(
        error_code=int(code),
        replica_election_results=[]
        if request.topic_partitions is None
        else _by_topic(names, refused),
    )


def _by_topic(names: list[str], results: list[list[LeaderResult]]) -> list[ReplicaElectionResult]:
    return [
        ReplicaElectionResult(topic=name, partition_result=[_partition(one) for one in of_topic])
        for name, of_topic in zip(names, results, strict=True)
    ]


def _partition(result: LeaderResult) -> PartitionResult:
    text = result.message
    if text is None and result.error is not ErrorCode.NONE:
        text = result.error.message
    return PartitionResult(
        partition_id=result.request.partition, error_code=int(result.error), error_message=text
    )
