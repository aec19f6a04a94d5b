"""ElectLeaders: a result for each topic of the request; elections are tested at the controller."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from broker.controller.active.leader_requests import LeaderRequest, LeaderResult
from broker.controller.active.partition_change import Election
from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.images.partition_image import PartitionImage
from broker.handlers import elect_leaders
from protocol.error_codes import ErrorCode as E
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.unit.broker.world import topic_id


class Controllers:
    """An active controller whose answers are given, beside an image with topics `a` and `b`."""

    def __init__(self) -> None:
        self.asked: list[tuple[Election, list[LeaderRequest]]] = []
        topics = {
            name: TopicImage(
                name,
                topic_id(name),
                tuple(PartitionImage(index, 1, 0, 0, (1,), (1,)) for index in range(2)),
                {},
                internal=False,
            )
            for name in ("a", "b")
        }
        self.image = replace(ClusterImage.empty(), topics=topics)

    async def elect_leaders(
        self, election: Election, wanted: list[LeaderRequest]
    ) -> list[LeaderResult]:
        self.asked.append((election, wanted))
        return [
            LeaderResult(
                one,
                E.PREFERRED_LEADER_NOT_AVAILABLE
                if one == LeaderRequest("b", 1)
                else E.ELECTION_NOT_NEEDED,
            )
            for one in wanted
        ]

    async def ask(self, election_type: int, topics: dict[str, list[int]] | list[Any] | None) -> Any:
        services: Any = SimpleNamespace(controller=self, active_controller=self)
        pairs = topics.items() if isinstance(topics, dict) else topics
        request = ElectLeadersRequest(
            election_type=election_type,
            topic_partitions=None
            if pairs is None
            else [TopicPartitions(topic=topic, partitions=list(of)) for topic, of in pairs],
        )
        context: Any = None
        return await elect_leaders.handle(services, context, request)


def shown(answer: Any) -> list[tuple[str, list[tuple[int, E]]]]:
    return [
        (one.topic, [(it.partition_id, E(it.error_code)) for it in one.partition_result])
        for one in answer.replica_election_results
    ]


async def test_all_topics_are_named_and_partitions_that_need_it() -> None:
    controllers = Controllers()
    answer = await controllers.ask(0, None)
    assert shown(answer) == [("a", []), ("b", [(1, E.PREFERRED_LEADER_NOT_AVAILABLE)])]
    (text,) = (one.error_message for one in answer.replica_election_results[1].partition_result)
    assert text == E.PREFERRED_LEADER_NOT_AVAILABLE.message
    ((election, wanted),) = controllers.asked
    assert election is Election.PREFERRED
    assert len(wanted) == 4


async def test_results_come_as_they_were_asked_for() -> None:
    """A topic that is there twice, and one without partitions, have results of their own."""
    controllers = Controllers()
    answer = await controllers.ask(1, [("b", [1, 0]), ("a", []), ("b", [0])])
    not_needed = E.ELECTION_NOT_NEEDED
    assert shown(answer) == [
        ("b", [(1, E.PREFERRED_LEADER_NOT_AVAILABLE), (0, not_needed)]),
        ("a", []),
        ("b", [(0, not_needed)]),
    ]
    assert controllers.asked[0][0] is Election.UNCLEAN
    assert (await controllers.ask(5, [])).error_code == 0


@pytest.mark.parametrize("election_type", [-1, 2])
async def test_unknown_types_are_refused_for_each_partition(election_type: int) -> None:
    controllers = Controllers()
    answer = await controllers.ask(election_type, {"a": [0, 7]})
    assert answer.error_code == E.INVALID_REQUEST
    assert shown(answer) == [("a", [(0, E.INVALID_REQUEST), (7, E.INVALID_REQUEST)])]
    (result,) = answer.replica_election_results
    assert result.partition_result[0].error_message == f"Unknown election type {election_type}"
    assert shown(await controllers.ask(election_type, None)) == []
    assert controllers.asked == []
