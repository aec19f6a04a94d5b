"""`uniform`: members get about as many partitions each, and keep their own where possible.

Source: Kafka, UniformAssignor.java.
"""

from broker.groups.consumer.assignors.uniform_heterogeneous import assign_heterogeneous
from broker.groups.consumer.assignors.uniform_homogeneous import assign_homogeneous
from broker.groups.modern.assignment import Assignment
from broker.groups.modern.assignor import Members, Topics


class UniformAssignor:
    """Even first, sticky second."""

    name = "uniform"

    def assign(self, members: Members, topics: Topics) -> dict[str, Assignment]:
        """The next target of every member; see `Assignor`."""
        if not members:
            return {}
        specs = iter(members.values())
        topic_ids = next(specs).subscribed_topic_ids
        if all(spec.subscribed_topic_ids == topic_ids for spec in specs):
            return assign_homogeneous(members, topic_ids, topics)
        return assign_heterogeneous(members, topics)
