"""Random groups for assignors, and what every target must keep to."""

from collections import Counter
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from broker.groups.modern.assignment import Assignment
from broker.groups.modern.assignor import Members, MemberSpec, Topics, TopicSpec

Targets = dict[str, Assignment]

ANY_SPEED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""How long a group takes to make up and to assign on a busy machine tells nothing."""


def topic(number: int) -> UUID:
    return UUID(int=number)


def topics(*counts: int) -> dict[UUID, TopicSpec]:
    """Topics 1, 2, ... with so many partitions."""
    return {
        topic(number): TopicSpec(f"t{number}", count)
        for number, count in enumerate(counts, start=1)
    }


def equal_members(count: int, topic_ids: Topics) -> dict[str, MemberSpec]:
    return {
        f"m{number:04}": MemberSpec(None, None, frozenset(topic_ids)) for number in range(count)
    }


def owning(members: Members, targets: Targets) -> dict[str, MemberSpec]:
    """The same members with these targets; those without one own nothing."""
    return {
        member_id: spec._replace(assignment=targets.get(member_id, {}))
        for member_id, spec in members.items()
    }


def sizes(targets: Targets) -> list[int]:
    return sorted(sum(map(len, target.values())) for target in targets.values())


def kept(members: Members, targets: Targets) -> int:
    """Partitions that stay where they are."""
    return sum(
        len(set(partitions) & set(targets[member_id].get(topic_id, ())))
        for member_id, spec in members.items()
        for topic_id, partitions in spec.assignment.items()
    )


def check_complete(members: Members, topic_specs: Topics, targets: Targets) -> None:
    """Everything that somebody wants is with one who wants it, once, and in order."""
    assert targets.keys() == members.keys()
    owners = Counter[tuple[UUID, int]]()
    for member_id, target in targets.items():
        assert set(target) <= set(members[member_id].subscribed_topic_ids)
        for topic_id, partitions in target.items():
            assert partitions
            assert list(partitions) == sorted(partitions)
            owners.update((topic_id, partition) for partition in partitions)
    wanted = {topic_id for spec in members.values() for topic_id in spec.subscribed_topic_ids}
    assert owners == Counter(
        (topic_id, partition)
        for topic_id in wanted
        for partition in range(topic_specs[topic_id].partition_count)
    )


@st.composite
def groups(draw: st.DrawFn, *, equal: bool) -> tuple[dict[str, MemberSpec], dict[UUID, TopicSpec]]:
    """Members that own partitions of an earlier time: also of topics that shrank or are gone."""
    specs = topics(*draw(st.lists(st.integers(1, 20), min_size=1, max_size=6)))
    ids = st.frozensets(st.sampled_from(sorted(specs)))
    common = draw(ids)
    names = draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=12, unique=True))
    members = {
        f"m{name}": MemberSpec(
            draw(st.none() | st.just(f"i{name * 7919 % 10**6}")),
            None,
            common if equal else draw(ids),
        )
        for name in names
    }
    owned: dict[str, dict[UUID, list[int]]] = {member_id: {} for member_id in members}
    for topic_id in (*specs, topic(99)):
        count = specs[topic_id].partition_count if topic_id in specs else 3
        for partition in range(count):
            owner = draw(st.none() | st.sampled_from(sorted(members)))
            if owner is not None:
                owned[owner].setdefault(topic_id, []).append(partition)
    targets: Targets = {
        member_id: {topic_id: tuple(partitions) for topic_id, partitions in target.items()}
        for member_id, target in owned.items()
    }
    return owning(members, targets), specs
