"""View of a partition at one moment: its bounds, and which offsets bucket and broker have.

offsets   start                    handover           end
          v                        v                  v
from      [ bucket, broker in gaps ][ broker          )
"""

from typing import NamedTuple

from typing_extensions import override

from pipeline.plan.partition_log import PartitionLog
from pipeline.plan.piece import PartitionName


class PartitionView(NamedTuple):
    """See the module.

    Attributes:
        name: Whose, with the id of the topic's incarnation.
        start: The earliest offset.
        end: Exclusive: after the last row of the isolation level that was asked for.
        log: As the bucket has it; None where it has nothing, or is not asked.
        handover: Offsets below come from the bucket.
        has_broker: What the bucket lacks can be asked of a broker.
        leader_epoch: That of the broker, -1: none.
        problem: Why what the bucket has is no part of the broker's log; "": it is, or has nothing.
    """

    name: PartitionName
    start: int
    end: int
    log: PartitionLog | None = None
    handover: int = 0
    has_broker: bool = False
    leader_epoch: int = -1
    problem: str = ""

    @override
    def __str__(self) -> str:
        return f"{self.name.topic}-{self.name.partition}"


class OffsetSpan(NamedTuple):
    """Offsets that are wanted, exclusive end."""

    start: int
    end: int
