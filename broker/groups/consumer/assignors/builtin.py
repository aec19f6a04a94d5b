"""The built-in assignors, by name; `uniform` is the default.

Source: Kafka, GroupCoordinatorConfig.java (group.consumer.assignors).
"""

from broker.groups.consumer.assignors.range_assignor import RangeAssignor
from broker.groups.consumer.assignors.uniform_assignor import UniformAssignor
from broker.groups.modern.assignor import Assignor

BUILTIN_ASSIGNORS: dict[str, Assignor] = {
    assignor.name: assignor for assignor in (UniformAssignor(), RangeAssignor())
}
