"""Progress of a table through its topic, as the table's own commits record it.

A JSON object, in the properties of an Iceberg snapshot, in a Parquet commit, and for people in a
Delta commit (where the numbers that count are application transactions):

    {"version": 1, "job": "...", "topic": "...", "topicId": "...", "batch": 3,
     "offsets": {"0": 120, "1": 77}}

and of a table that is kept by key `"keyed": "0a1b2c3d"`, of one beside which records are in
quarantine `"quarantine": 2`. Offsets are those of the next record per
partition; a partition that is missing has not begun.
"""

import json
from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from pipeline.lake.errors import ForeignTableError

VERSION: Final = 1

KEY: Final = "varve.progress"
"""Under which it is kept where a table has properties."""


class Progress(NamedTuple):
    """Offsets of a topic up to which a table holds its records.

    Attributes:
        job: Name of the job that keeps the table; another one's commits are not this one's.
        topic: Its name.
        topic_id: Which incarnation of it.
        batch: Number of the batch that was committed last; 0: none yet.
        offsets: Next offset per partition.
        keyed: Of a table that is kept by key, 8 hexadecimal digits that name its state
            (`pipeline.lake.keyed.state`); empty: it is none.
        quarantine: Number of the batch that the quarantine had then: with less it has lost records.
    """

    job: str
    topic: str
    topic_id: UUID
    batch: int
    offsets: Mapping[int, int]
    keyed: str = ""
    quarantine: int = 0

    def advanced(self, ends: Mapping[int, int]) -> "Progress":
        """After one more batch, which reaches up to `ends`."""
        return self._replace(batch=self.batch + 1, offsets={**self.offsets, **ends})


def encode_progress(progress: Progress) -> str:
    """One line of JSON."""
    offsets = {str(partition): offset for partition, offset in sorted(progress.offsets.items())}
    return json.dumps(
        {
            "version": VERSION,
            "job": progress.job,
            "topic": progress.topic,
            "topicId": str(progress.topic_id),
            "batch": progress.batch,
            "offsets": offsets,
            **({"keyed": progress.keyed} if progress.keyed else {}),
            **({"quarantine": progress.quarantine} if progress.quarantine else {}),
        }
    )


def decode_progress(text: str) -> Progress:
    """Decode what `encode_progress` wrote.

    Raises:
        ForeignTableError: It is of a newer version, or no such object.
    """
    try:
        found = json.loads(text)
        version = found["version"]
        if version != VERSION:
            raise ForeignTableError(
                f"the table's offsets are in version {version}, this release knows {VERSION}"
            )
        offsets = {int(partition): int(offset) for partition, offset in found["offsets"].items()}
        if min(offsets.values(), default=0) < 0 or min(offsets, default=0) < 0:
            raise ValueError("a number below 0")
        return Progress(
            str(found["job"]),
            str(found["topic"]),
            UUID(found["topicId"]),
            int(found["batch"]),
            offsets,
            str(found.get("keyed", "")),
            int(found.get("quarantine", 0)),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ForeignTableError(f"the table's offsets cannot be read: {error}") from error
