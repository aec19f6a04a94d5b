"""`range`: of each topic, every subscriber gets a run of neighbouring partitions.

Members stand in line, those with an instance id first and by it, the others by member id: a static
member that comes back under another member id gets the same runs. Each topic is cut into as many
runs as it has subscribers, the first ones longer by one when it does not divide:

    7 partitions, 3 subscribers:   0 1 2 | 3 4 | 5 6

Topics with equally many partitions and the same subscribers are cut at the same places, so that
the owner of partition 4 of one owns partition 4 of the other (co-partitioning, for joins). Earlier
assignments play no part.

Source: Kafka, RangeAssignor.java.
"""

from uuid import UUID

from broker.groups.modern.assignment import Assignment
from broker.groups.modern.assignor import Members, Topics, partition_count


class RangeAssignor:
    """Runs of neighbouring partitions."""

    name = "range"

    def assign(self, members: Members, topics: Topics) -> dict[str, Assignment]:
        """The next target of every member; see `Assignor`."""
        subscribers: dict[UUID, list[str]] = {}
        line = sorted(members, key=lambda member_id: _place(member_id, members))
        for member_id in line:
            for topic_id in members[member_id].subscribed_topic_ids:
                subscribers.setdefault(topic_id, []).append(member_id)
        targets: dict[str, dict[UUID, tuple[int, ...]]] = {member_id: {} for member_id in members}
        for topic_id, member_ids in subscribers.items():
            shortest, longer = divmod(partition_count(topics, topic_id), len(member_ids))
            start = 0
            for position, member_id in enumerate(member_ids):
                end = start + shortest + (position < longer)
                if start == end:
                    break
                targets[member_id][topic_id] = tuple(range(start, end))
                start = end
        return dict(targets)


def _place(member_id: str, members: Members) -> tuple[bool, str, str]:
    instance_id = members[member_id].instance_id
    return (instance_id is None, instance_id or "", member_id)
