"""An operator who moves partitions to other brokers, and takes moves back."""

from contextlib import suppress
from random import Random

from broker.controller.images.partition_image import PartitionImage
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.simulation.clients.session import LOST, Session
from tests.simulation.oracles.assignments import Assignments
from tests.simulation.world import Place


class Reassigner:
    """See the module. What is asked and answered is noted (R)."""

    def __init__(self, operator: Session, assignments: Assignments) -> None:
        self._operator = operator
        self._assignments = assignments

    def give(self, place: Place, replicas: tuple[int, ...] | None) -> None:
        """Ask some broker for replicas of a partition; None: those of before the move under way."""
        self._operator.begin(self._give(place, replicas))

    async def _give(self, place: Place, replicas: tuple[int, ...] | None) -> None:
        wanted = ReassignablePartition(
            partition_index=place.partition,
            replicas=None if replicas is None else list(replicas),
        )
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=place.topic, partitions=[wanted])]
        )
        asked = self._assignments.ask(place, replicas)
        with suppress(*LOST):
            answer = await self._operator.call(self._operator.any_broker(), request)
            code = answer.error_code or answer.responses[0].partitions[0].error_code
            self._assignments.answered(place, asked, ErrorCode(code))


def replicas_beside(
    record: PartitionImage, nodes: list[int], random: Random
) -> tuple[int, ...] | None:
    """Replicas of which at least one is new; None: every broker has one."""
    others = [node for node in nodes if node not in record.original]
    if not others:
        return None
    new = random.choice(others)
    rest = random.sample(
        [node for node in nodes if node != new], random.randint(1, min(2, len(nodes) - 1))
    )
    replicas = [new, *rest]
    random.shuffle(replicas)
    return tuple(replicas)
