"""The bit fields Kafka sends when there is no authorizer."""

from broker.controller.authorized_operations import (
    CLUSTER_OPERATIONS,
    GROUP_OPERATIONS,
    NOT_ASKED,
    TOPIC_OPERATIONS,
)


def test_bits_are_kafkas() -> None:
    """Bit n for AclOperation n: READ 3, WRITE 4, CREATE 5, DELETE 6, ALTER 7, DESCRIBE 8 ..."""
    assert sum(1 << n for n in (3, 4, 5, 6, 7, 8, 10, 11)) == TOPIC_OPERATIONS
    assert sum(1 << n for n in (5, 7, 8, 9, 10, 11, 12)) == CLUSTER_OPERATIONS
    assert sum(1 << n for n in (3, 6, 8, 10, 11)) == GROUP_OPERATIONS
    assert NOT_ASKED == -2147483648
