"""ElectLeaders (API key 43), versions 0 to 2.

Behaviour:
- Elects preferred leaders, or any replica where there is no leader (unclean: records may be lost).
- Without a list, all partitions: those that need no election are not in the answer.
- The answer comes when the broker's image has the new leaders; `timeout_ms` is what the way to the
  controller may take.

Versions:
- 0   preferred leaders         KIP-183
- 1   unclean elections         KIP-460
- 2   flexible
"""

from itertools import groupby
from typing import TYPE_CHECKING

from broker.controller.active.leader_requests import LeaderRequest, all_partitions
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
    if request.election_type not in (PREFERRED, UNCLEAN):
        return ElectLeadersResponse(error_code=int(ErrorCode.INVALID_REQUEST))
    election = Election.PREFERRED if request.election_type == PREFERRED else Election.UNCLEAN
    if request.topic_partitions is None:
        wanted = list(all_partitions(services.controller.image))
    else:
        wanted = [
            LeaderRequest(one.topic, index)
            for one in request.topic_partitions
            for index in one.partitions
        ]
    results = await services.active_controller.elect_leaders(election, wanted)
    if request.topic_partitions is None:
        results = [one for one in results if one.error is not ErrorCode.ELECTION_NOT_NEEDED]
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic,
                partition_result=[
                    PartitionResult(
                        partition_id=one.request.partition,
                        error_code=int(one.error),
                        error_message=one.message
                        or (one.error.message if one.error is not ErrorCode.NONE else None),
                    )
                    for one in group
                ],
            )
            for topic, group in groupby(results, lambda one: one.request.topic)
        ]
    )
