"""State of a keyed table besides its rows: one object for each commit, written before it.

    <table>/_varve/keyed/<topic id>-<batch, 20 digits>-<fingerprint>.json

    {"version": 1, "mode": "upsert", "buckets": 16, "identity": "key",
     "orderTimes": {"0": 1790000000000000}, "deleted": {"3": "_varve/keyed/deleted/..."}}

    orderTimes   per partition the greatest timestamp so far, microseconds
    deleted      per bucket the file of its deleted keys

The table's own commit names it: `Progress.keyed` is its fingerprint. A table whose commit names an
object that is not there cannot go on, since deleted rows might come back.
"""

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import ForeignTableError
from pipeline.lake.sinks.base import Sink

VERSION: Final = 1

FOLDER: Final = "_varve/keyed/"

DELETED_FOLDER: Final = "_varve/keyed/deleted/"


class KeyedState(NamedTuple):
    """See the module.

    Attributes:
        mode: Of the job.
        buckets: Of keys.
        identity: The column of keys' bytes.
        order_times: Per partition; one that is missing has none yet.
        deleted: Keys of files, per bucket.
    """

    mode: str
    buckets: int
    identity: str
    order_times: Mapping[int, int]
    deleted: Mapping[int, str]


def state_key(progress: Progress) -> str:
    """Of the object that a commit names."""
    return f"{FOLDER}{progress.topic_id.hex[:8]}-{progress.batch:020d}-{progress.keyed}.json"


def deleted_key(topic_id_start: str, bucket: int, batch: int, fingerprint: str) -> str:
    """Of a bucket's file of deleted keys."""
    return f"{DELETED_FOLDER}{topic_id_start}-{bucket:05d}-{batch:020d}-{fingerprint}.parquet"


def encode_state(state: KeyedState) -> bytes:
    """One JSON object."""
    return json.dumps(
        {
            "version": VERSION,
            "mode": state.mode,
            "buckets": state.buckets,
            "identity": state.identity,
            "orderTimes": {str(n): time for n, time in sorted(state.order_times.items())},
            "deleted": {str(n): key for n, key in sorted(state.deleted.items())},
        }
    ).encode()


def decode_state(data: bytes) -> KeyedState:
    """Decode what `encode_state` wrote.

    Raises:
        ForeignTableError: It is of another version, or damaged.
    """
    try:
        found = json.loads(data)
        if found["version"] != VERSION:
            raise ForeignTableError(
                f"the state of a table by key has version {found['version']}, this release knows "
                f"{VERSION}"
            )
        return KeyedState(
            str(found["mode"]),
            int(found["buckets"]),
            str(found["identity"]),
            {int(number): int(time) for number, time in found["orderTimes"].items()},
            {int(number): str(key) for number, key in found["deleted"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ForeignTableError(f"the state of a table by key cannot be read: {error}") from error


def read_state(sink: Sink, progress: Progress) -> KeyedState:
    """Read the state that a table's commit names.

    Raises:
        ForeignTableError: It is not there, or cannot be read.
    """
    key = state_key(progress)
    data = sink.store.get(key)
    if data is None:
        raise ForeignTableError(
            f"{sink.name}: {key} is not there, and without it rows that were deleted might come "
            "back: restore it, or name a new table in sink.table"
        )
    return decode_state(data)
