"""Elections that an administrator asks for (ElectLeaders), planned like those of brokers that die.

    preferred   the first replica leads again, if it is in sync      PREFERRED_LEADER_NOT_AVAILABLE
    unclean     any replica leads, where there is no leader          ELIGIBLE_LEADERS_NOT_AVAILABLE
    the partition has that leader, or a leader, already              ELECTION_NOT_NEEDED

Source: Kafka 4.2, ReplicationControlManager.java (electLeaders).
"""

from collections.abc import Iterable
from typing import NamedTuple

from broker.controller.active.partition_change import Election, changed
from broker.controller.active.partition_plan import PartitionPlan
from broker.controller.active.topic_terms import TopicTerms
from broker.controller.images.partition_image import NO_LEADER
from protocol.error_codes import ErrorCode


class LeaderRequest(NamedTuple):
    """A partition that is to get another leader."""

    topic: str
    partition: int


class LeaderResult(NamedTuple):
    """What came of it."""

    request: LeaderRequest
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def plan_elections(
    plan: PartitionPlan, terms: TopicTerms, election: Election, wanted: Iterable[LeaderRequest]
) -> list[LeaderResult]:
    """Plan elections; one result per partition, in order."""
    return [_plan(plan, terms, election, request) for request in wanted]


def _plan(
    plan: PartitionPlan, terms: TopicTerms, election: Election, request: LeaderRequest
) -> LeaderResult:
    topic = plan.image.topics.get(request.topic)
    current = None if topic is None else plan.partition(topic, request.partition)
    if topic is None or current is None:
        return LeaderResult(
            request,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"No such partition as {request.topic}-{request.partition}",
        )
    is_preferred = election is Election.PREFERRED
    if current.leader == current.replicas[0] if is_preferred else current.leader != NO_LEADER:
        return LeaderResult(request, ErrorCode.ELECTION_NOT_NEEDED)
    new = changed(current, terms.of(topic, current, election=election))
    if new.leader == current.leader:
        code = (
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            if is_preferred
            else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )
        return LeaderResult(request, code)
    plan.change(topic, new)
    return LeaderResult(request)
