"""Limits of one request, so that it cannot hold the event loop for long.

A handler works through a request's lists in one go, at 2 to 20 us an element, and an element may be
a few bytes on the wire. So the time a client can take is bounded by the number of elements, and not
by the size: a frame of 1 MiB could hold the loop for two seconds. Kafka has no such limit; these
are ten times what clients of one broker ask for, but for a plan of moves, which comes in one
request and is worked off in turns.

    what is bounded                                     most
    elements of all lists of a request, nested too      10,000
    - of AlterPartitionReassignments, in turns          25,000
    - of CreateTopics and two Describes, 15 us each      5,000
    - of (Incremental)AlterConfigs, 25 us each           2,500
    - of WriteTxnMarkers, an append each                 1,000
    partitions of a Fetch, with those of its session    10,000
    partitions of a Produce                             10,000
    bytes of a request other than Produce               16 MiB

Beyond it the connection is closed with a line that names the limit, as for a frame above
`socket.request.max.bytes`.
"""

from typing import Final

from protocol.api_keys import ApiKey
from protocol.errors import DecodeError
from protocol.message import REQUEST_ELEMENTS_MAX, Message

ELEMENTS_MAX: Final = 10_000
ELEMENTS_MAX_OF: Final = {
    # kafka-reassign-partitions sends a whole plan: 5,000 partitions and their replicas.
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: REQUEST_ELEMENTS_MAX,
    ApiKey.CREATE_TOPICS: 5_000,
    ApiKey.DESCRIBE_CONFIGS: 5_000,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: 5_000,
    ApiKey.ALTER_CONFIGS: 2_500,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 2_500,
    ApiKey.WRITE_TXN_MARKERS: 1_000,
}

SIZE_MAX: Final = 16 * 1024 * 1024
"""The largest known: a group leader's SyncGroup with the assignments of thousands of members."""


def check_size(api_key: int, size: int) -> None:
    """Refuse a request by its bytes, before it is decoded.

    Raises:
        DecodeError: Too many.
    """
    if size > SIZE_MAX and api_key != ApiKey.PRODUCE:
        raise DecodeError(f"request of {size} bytes, at most {SIZE_MAX} are allowed here")


def elements_max_of(api_key: ApiKey) -> int:
    """Most elements of a request of this kind."""
    return ELEMENTS_MAX_OF.get(api_key, ELEMENTS_MAX)


def check_elements(request: Message, limit: int) -> None:
    """Refuse a decoded request by the elements of its lists.

    Counting stops at the limit, so it costs milliseconds at most. A request of no more bytes than
    `limit` need not be counted: no element is less than a byte.

    Raises:
        DecodeError: Too many.
    """
    total = 0
    unseen: list[Message] = [request]
    while unseen:
        message = unseen.pop()
        for name in message.__slots__:
            value = getattr(message, name)
            if type(value) is list and value:
                total += len(value)
                if total > limit:
                    raise too_many(limit)
                if isinstance(value[0], Message):
                    unseen.extend(value)
            elif isinstance(value, Message):
                unseen.append(value)


def check_partitions(count: int) -> None:
    """Refuse a Produce or Fetch by its partitions.

    Raises:
        DecodeError: Too many.
    """
    if count > ELEMENTS_MAX:
        raise too_many(ELEMENTS_MAX)


def too_many(limit: int) -> DecodeError:
    """The error that names the limit."""
    return DecodeError(f"request lists more than {limit} elements")
