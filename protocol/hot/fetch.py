"""Fetch (API key 1), versions 4 to 18: request decode and response encode, by hand.

Request, big-endian; `[n]` an array with 32-bit count, from v12 compact; strings alike:

    replica_id       int32                          up to v14; -1: a consumer
    max_wait_ms      int32
    min_bytes        int32
    max_bytes        int32
    isolation_level  int8                           0 read_uncommitted, 1 read_committed
    session_id       int32                          from v7
    session_epoch    int32                          from v7
    topics [n]       name string | topic_id 16      the id from v13
                     partitions [n]:
                         partition             int32
                         current_leader_epoch  int32     from v9
                         fetch_offset          int64
                         last_fetched_epoch    int32     from v12
                         log_start_offset      int64     from v5
                         max_bytes             int32
                         tag 0 directory id    16        from v17
                         tag 1 high_watermark  int64     from v18
    forgotten [n]    name | topic_id, partitions [n] int32     from v7
    rack_id          string                         from v11
    tag 0            cluster_id nullable string     from v12
    tag 1            replica_id int32, replica_epoch int64     from v15

Response:

    throttle_time_ms int32
    error_code       int16                          from v7
    session_id       int32                          from v7
    topics [n]       name | topic_id
                     partitions [n]:
                         index int32, error_code int16, high_watermark int64,
                         last_stable_offset int64
                         log_start_offset          int64     from v5
                         aborted [n] nullable      producer id int64, first offset int64
                         preferred_read_replica    int32     from v11
                         records                   bytes
                         tag 0 diverging_epoch     epoch int32, end offset int64    from v12
                         tag 1 current_leader      id int32, epoch int32            from v12
    tag 0            node_endpoints [n]             from v16

Versions:
- 4   isolation level, aborted transactions         KIP-98
- 5   log start offset                              KIP-107
- 7   incremental sessions                          KIP-227
- 9   fencing by current leader epoch               KIP-320
- 10  zstd                                          KIP-110
- 11  rack of the client                            KIP-392
- 12  flexible; last fetched epoch                  KIP-482, KIP-595
- 13  topic ids                                     KIP-516
- 14  OFFSET_MOVED_TO_TIERED_STORAGE                KIP-405
- 15  replica state                                 KIP-903
- 16  addresses of current leaders                  KIP-951
- 17  directory id                                  KIP-853
- 18  high watermark of the follower                KIP-1166

A response is a list of buffers in wire order: our own bytes, merged, and between them the records
objects exactly as they were given, so that file slices can leave by sendfile.

`fetch_request` has the values, `fetch_decode` and `fetch_encode` the work.

Source: Kafka, FetchRequest.json, FetchResponse.json.
"""

from protocol.hot.fetch_decode import decode_request
from protocol.hot.fetch_encode import FetchPartitionResponse, encode_response, records_length
from protocol.hot.fetch_request import (
    FIRST_FLEXIBLE_VERSION,
    FIRST_TOPIC_ID_VERSION,
    MAX_VERSION,
    MIN_VERSION,
    NO_HIGH_WATERMARK,
    FetchPartition,
    FetchRequest,
    FetchTopic,
)

__all__ = [
    "FIRST_FLEXIBLE_VERSION",
    "FIRST_TOPIC_ID_VERSION",
    "MAX_VERSION",
    "MIN_VERSION",
    "NO_HIGH_WATERMARK",
    "FetchPartition",
    "FetchPartitionResponse",
    "FetchRequest",
    "FetchTopic",
    "decode_request",
    "encode_response",
    "records_length",
]
