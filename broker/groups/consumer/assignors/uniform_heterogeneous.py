"""`uniform` where members subscribed to different topics: as even as the subscriptions allow.

    1. Each member keeps what it has of the topics it still wants.
    2. What is free goes to the subscriber with the fewest partitions, topics with many partitions
       a subscriber first: their subscribers fill up, and the rest evens out what they leave.
    3. Topic by topic, partitions move from the subscriber with the most to the one with the
       fewest, until these differ by at most one; again and again until a whole round moves
       nothing, at most `ROUNDS_MAX` times.

The result is even among the subscribers of every topic. Over a chain of topics a difference of more
than one may stay (9, 10 and 11 partitions, where the first and the last share no topic).

Subscribers of a topic stand in line by number of partitions, then by member id. Two fingers walk on
that line, both a level at a time, so that neither step searches:

              fewest                       most
    count          |                    #
                   | [ . -> ]           #  <- [ # ]  nothing of this topic to give: left out
                   | [######]## ## ## ##[#####]
                   +-------------------------------> line

Source: Kafka, UniformHeterogeneousAssignmentBuilder.java.
"""

from uuid import UUID

from broker.groups.modern.assignment import Assignment
from broker.groups.modern.assignor import Members, Topics, partition_count, topic_order

ROUNDS_MAX = 16
"""Each round about halves what is uneven; with equal subscriptions one is enough."""

_UNASSIGNED = -1


def assign_heterogeneous(members: Members, topics: Topics) -> dict[str, Assignment]:
    """The next target of every member.

    Raises:
        AssignorError: A member subscribed to a topic that is not among `topics`.
    """
    return _Sharing(members, topics).share_out()


class _Sharing:
    """One assignment being computed; members are numbers, in the order of their ids."""

    def __init__(self, members: Members, topics: Topics) -> None:
        self._member_ids = sorted(members)
        self._subscribers: dict[UUID, list[int]] = {}
        for member, member_id in enumerate(self._member_ids):
            for topic_id in members[member_id].subscribed_topic_ids:
                self._subscribers.setdefault(topic_id, []).append(member)
        self._owners = {
            topic_id: [_UNASSIGNED] * partition_count(topics, topic_id)
            for topic_id in self._subscribers
        }
        self._sizes = [0] * len(members)
        self._order = sorted(self._subscribers, key=self._topic_place)
        for member, member_id in enumerate(self._member_ids):
            spec = members[member_id]
            for topic_id, partitions in spec.assignment.items():
                if topic_id in spec.subscribed_topic_ids:
                    self._keep(member, topic_id, partitions)

    def share_out(self) -> dict[str, Assignment]:
        self._assign_free()
        self._even_out()
        targets: list[dict[UUID, tuple[int, ...]]] = [{} for _ in self._member_ids]
        for topic_id, owners in self._owners.items():
            shares: dict[int, list[int]] = {}
            for partition, owner in enumerate(owners):
                shares.setdefault(owner, []).append(partition)
            for owner, share in shares.items():
                targets[owner][topic_id] = tuple(share)
        return dict(zip(self._member_ids, targets, strict=True))

    def _topic_place(self, topic_id: UUID) -> tuple[float, int, tuple[int, int]]:
        subscribers = len(self._subscribers[topic_id])
        return (-len(self._owners[topic_id]) / subscribers, subscribers, topic_order(topic_id))

    def _keep(self, member: int, topic_id: UUID, partitions: tuple[int, ...]) -> None:
        owners = self._owners[topic_id]
        for partition in partitions:
            # No target of ours names a partition twice or one that does not exist.
            if partition < len(owners) and owners[partition] == _UNASSIGNED:
                owners[partition] = member
                self._sizes[member] += 1

    def _assign_free(self) -> None:
        for topic_id in self._order:
            owners = self._owners[topic_id]
            free = [partition for partition, owner in enumerate(owners) if owner == _UNASSIGNED]
            if not free:
                continue
            line = _Line(self._subscribers[topic_id], self._sizes)
            for partition in free:
                member = line.take_fewest()
                owners[partition] = member
                self._sizes[member] += 1

    def _even_out(self) -> None:
        order = [topic_id for topic_id in self._order if len(self._subscribers[topic_id]) > 1]
        last_moved = None
        for _ in range(ROUNDS_MAX):
            for topic_id in order:
                if topic_id is last_moved:
                    return
                if self._even_out_topic(topic_id) or last_moved is None:
                    last_moved = topic_id

    def _even_out_topic(self, topic_id: UUID) -> bool:
        """Whether anything moved."""
        sizes = self._sizes
        line = _Line(self._subscribers[topic_id], sizes)
        if line.difference <= 1:
            return False
        owners = self._owners[topic_id]
        may_give: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            may_give.setdefault(owner, []).append(partition)
        moved = False
        while (giver := self._next_giver(line, may_give)) is not None:
            partition = may_give[giver].pop()
            receiver = line.take_fewest()
            if line.even:
                break
            owners[partition] = receiver
            sizes[giver] -= 1
            sizes[receiver] += 1
            moved = True
        return moved

    @staticmethod
    def _next_giver(line: "_Line", may_give: dict[int, list[int]]) -> int | None:
        while (giver := line.take_most()) is not None:
            if may_give.get(giver):
                return giver
            line.leave_out()
        return None


class _Line:
    """Subscribers of one topic by number of partitions, and the two fingers on it.

    A caller that takes a member from the line gives it a partition, or takes one from it, at once:
    the levels rely on it.
    """

    def __init__(self, members: list[int], sizes: list[int]) -> None:
        self._sizes = sizes
        # Members ascend, and sorting is stable.
        self._line = sorted(members, key=sizes.__getitem__)
        fewest, most = sizes[self._line[0]], sizes[self._line[-1]]
        self.difference = most - fewest
        # [0, low_end) had `low_level` partitions each before this pass over them.
        self._low_end = 0
        self._low_level = fewest - 1
        self._low_next = 0
        # [high_start, high_end) had `high_level`; behind it are those that were left out.
        self._high_start = self._high_end = len(self._line)
        self._high_level = most + 1
        self._high_next = len(self._line) - 1

    @property
    def even(self) -> bool:
        """The fingers are on levels that differ by at most one."""
        return self._high_level - self._low_level <= 1

    def take_fewest(self) -> int:
        """The member with the fewest partitions, which gets one more."""
        line, sizes = self._line, self._sizes
        if self._low_next >= self._low_end:
            self._low_level += 1
            while self._low_end < len(line) and sizes[line[self._low_end]] == self._low_level:
                self._low_end += 1
            self._low_next = 0
        self._low_next += 1
        return line[self._low_next - 1]

    def take_most(self) -> int | None:
        """The member with the most partitions, which gives one away; None: none can."""
        line, sizes = self._line, self._sizes
        if self._high_next < self._high_start:
            if self._high_end <= self._high_start and self._high_start > 0:
                # All of this level were left out: go on where the next ones are.
                self._high_level = sizes[line[self._high_start - 1]]
            else:
                self._high_level -= 1
            while self._high_start > 0 and sizes[line[self._high_start - 1]] == self._high_level:
                self._high_start -= 1
            self._high_next = self._high_end - 1
        if self._high_next < 0:
            return None
        self._high_next -= 1
        return line[self._high_next + 1]

    def leave_out(self) -> None:
        """Leave out the member last taken from the upper end: it has nothing to give."""
        line = self._line
        taken, last = self._high_next + 1, self._high_end - 1
        line[taken], line[last] = line[last], line[taken]
        self._high_end -= 1
