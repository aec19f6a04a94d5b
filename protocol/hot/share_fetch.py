"""ShareFetch (API key 78), versions 1 to 2: the response by hand, so that records stay in files.

    throttle_time_ms             int32
    error_code                   int16
    error_message                compact nullable string
    acquisition_lock_timeout_ms  int32
    responses [n]                topic_id 16
                                 partitions [n]:
                                     index              int32
                                     error_code         int16
                                     error_message      compact nullable string
                                     acknowledge_error_code     int16
                                     acknowledge_error_message  compact nullable string
                                     current_leader     leader_id int32, leader_epoch int32, tags
                                     records            compact bytes
                                     acquired [n]       first int64, last int64, count int16, tags
                                     tags
                                 tags
    node_endpoints [n]           node_id int32, host, port int32, rack, tags
    tags

The request is decoded by `protocol.messages.share_fetch`: it has no records.

Source: Kafka, ShareFetchResponse.json.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final
from uuid import UUID

from protocol.hot.fetch import records_length
from protocol.hot.wire import NodeEndpoint, node_endpoints_array, uvarint

_HEAD: Final = Struct(">ih")
_INT32: Final = Struct(">i")
_INDEX_AND_CODE: Final = Struct(">ih")
_INT16: Final = Struct(">h")
_ACQUIRED: Final = Struct(">qqhx")

_ID_AND_EPOCH: Final = Struct(">iix")
_LEADER: Final = _ID_AND_EPOCH.pack(0, 0)
_NO_LEADER: Final = _ID_AND_EPOCH.pack(-1, -1)
"""With an error a client believes what is said of another leader: nothing, then."""

_NULL: Final = b"\x00"
_NO_TAGS: Final = b"\x00"
_EMPTY: Final = b"\x01"


class ShareFetchedPartition:
    """The response for one partition.

    Attributes:
        index: Partition.
        error_code: Of the fetch.
        acknowledge_error_code: Of what was acknowledged with the same request.
        records: Whatever goes out between our own bytes: it has a length; None: no records.
        acquired: First offset, last offset (inclusive) and delivery count of each range.
        error_message: Of the fetch.
        acknowledge_error_message: Of what was acknowledged.
        current_leader: (leader id, leader epoch) with NOT_LEADER_OR_FOLLOWER.
    """

    __slots__ = (
        "acknowledge_error_code",
        "acknowledge_error_message",
        "acquired",
        "current_leader",
        "error_code",
        "error_message",
        "index",
        "records",
    )

    def __init__(
        self,
        index: int,
        error_code: int = 0,
        acknowledge_error_code: int = 0,
        records: Any = None,
        acquired: Sequence[tuple[int, int, int]] = (),
        error_message: str | None = None,
        acknowledge_error_message: str | None = None,
        current_leader: tuple[int, int] | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.acknowledge_error_code = acknowledge_error_code
        self.records = records
        self.acquired = acquired
        self.error_message = error_message
        self.acknowledge_error_message = acknowledge_error_message
        self.current_leader = current_leader


def encode_response(
    topics: Sequence[tuple[UUID, Sequence[ShareFetchedPartition]]],
    *,
    error_code: int = 0,
    error_message: str | None = None,
    lock_timeout_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> list[Any]:
    """The response body as buffers in wire order: our own bytes, and the records as they are.

    `node_endpoints`: (node id, host, port, rack) of the leaders named in `current_leader`.
    """
    buffers: list[Any] = []
    parts = [
        _HEAD.pack(0, error_code),
        _text(error_message),
        _INT32.pack(lock_timeout_ms),
        uvarint(len(topics) + 1),
    ]
    for topic_id, partitions in topics:
        parts += (topic_id.bytes, uvarint(len(partitions) + 1))
        for it in partitions:
            parts += (
                _INDEX_AND_CODE.pack(it.index, it.error_code),
                _text(it.error_message),
                _INT16.pack(it.acknowledge_error_code),
                _text(it.acknowledge_error_message),
                _leader(it),
            )
            length = records_length(it.records)
            if not length:
                parts.append(_EMPTY)
            else:
                parts.append(uvarint(length + 1))
                buffers += (b"".join(parts), it.records)
                parts = []
            parts.append(uvarint(len(it.acquired) + 1))
            parts += [_ACQUIRED.pack(*acquired) for acquired in it.acquired]
            parts.append(_NO_TAGS)
        parts.append(_NO_TAGS)
    parts += (node_endpoints_array(node_endpoints), _NO_TAGS)
    buffers.append(b"".join(parts))
    return buffers


def _leader(partition: ShareFetchedPartition) -> bytes:
    named = partition.current_leader
    if named is not None:
        return _ID_AND_EPOCH.pack(*named)
    return _NO_LEADER if partition.error_code or partition.acknowledge_error_code else _LEADER


def _text(text: str | None) -> bytes:
    if text is None:
        return _NULL
    octets = text.encode()
    return uvarint(len(octets) + 1) + octets
