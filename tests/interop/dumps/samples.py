"""Values for records of coordinators: the edges of each type, and how Kafka's tool prints them."""

from collections.abc import Mapping
from random import Random
from uuid import UUID

from storage.types.uuid_text import format_uuid

ROUNDS = 60
"""Records of each kind."""


def random_text(random: Random) -> str:
    return random.choice(["", "a", "grüppe", "x" * 126, "y" * 127, "z" * 300, "some.topic_1"])


def random_nullable(random: Random) -> str | None:
    return None if random.random() < 0.4 else random_text(random)


def random_uuid(random: Random) -> UUID:
    return UUID(int=random.getrandbits(128))


def random_int32(random: Random) -> int:
    return random.choice([-1, 0, 1, 127, 128, 1 << 20, (1 << 31) - 1])


def random_int64(random: Random) -> int:
    return random.choice([-1, 1, 1 << 40, -(1 << 63), (1 << 63) - 1])


def random_assignment(random: Random) -> dict[UUID, tuple[int, ...]]:
    return {
        random_uuid(random): tuple(range(random.choice([0, 1, 5, 130])))
        for _ in range(random.randrange(4))
    }


def assignment_json(assignment: Mapping[UUID, tuple[int, ...]]) -> list[dict[str, object]]:
    return [
        {"topicId": format_uuid(topic_id), "partitions": list(partitions)}
        for topic_id, partitions in assignment.items()
    ]
