"""Reader of the histories in a listing of the bucket, for a restore and for verification.

A history that cannot be read is reported as a problem, and nothing else changes: what it would
have said is unknown then, namely where DeleteRecords has moved the log start.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError
from tiered.format.object_keys import HISTORY_NAME, ObjectKeys
from tiered.metadata.history import HistorySummary, decode_history, decode_summary
from tiered.segment_metadata import TopicIdPartition
from tiered.tier import Tier

READS_AT_A_TIME: Final = 16
"""Histories that are read together."""

_KEYS: Final = ObjectKeys()


async def read_histories(
    tier: Tier, names: Sequence[str], problems: list[str]
) -> dict[TopicIdPartition, HistorySummary]:
    """Summaries of histories: all but their segments.

    Args:
        tier: Reads the bucket.
        names: Of the objects.
        problems: Gets those that are damaged, or of a newer version.

    Raises:
        RemoteStorageError: The bucket cannot be read now.
    """
    found: dict[TopicIdPartition, HistorySummary] = {}
    for start in range(0, len(names), READS_AT_A_TIME):
        part = names[start : start + READS_AT_A_TIME]
        for summary in await asyncio.gather(*(_read(tier, name, problems) for name in part)):
            if summary is not None:
                found[summary.partition] = summary
    return found


async def _read(tier: Tier, name: str, problems: list[str]) -> HistorySummary | None:
    try:
        summary = decode_summary(await tier.get_object(name), name)
    except ObjectNotFoundError:
        return None  # deleted meanwhile
    except CorruptRemoteDataError as error:
        problems.append(
            f"{name}: {error.problem}; records that DeleteRecords has removed may be among what is "
            "left of the partition"
        )
        return None
    if _KEYS.history_key(summary.partition) != name:
        problems.append(f"{name} is the history of {summary.partition}")
        return None
    return summary


async def verify_history(tier: Tier, name: str) -> list[str]:
    """What is wrong with a history; empty: it is whole, and all that it names is there.

    Args:
        tier: Reads the bucket.
        name: Of the object; that it is missing is no fault.

    Raises:
        RemoteStorageError: The bucket cannot be read now.
    """
    faults = await _faults(tier, name)
    # A leader may have rewritten it, and removed what it named, between reading and listing.
    return await _faults(tier, name) if faults else []


async def _faults(tier: Tier, name: str) -> list[str]:
    try:
        history = decode_history(await tier.get_object(name), name)
    except ObjectNotFoundError:
        return []
    except CorruptRemoteDataError as error:
        return [f"{name}: {error.problem}"]
    if _KEYS.history_key(history.summary.partition) != name:
        return [f"{name} is the history of {history.summary.partition}"]
    objects: set[str] = set()
    continuation: str | None = None
    while True:
        page = await tier.list_objects(name.removesuffix(HISTORY_NAME), continuation)
        objects.update(one.key for one in page.objects)
        continuation = page.continuation
        if continuation is None:
            break
    return [
        f"{name} names {key}, which is not there"
        for segment in history.segments
        for key in _KEYS.segment_keys(segment)
        if key not in objects
    ]


def histories_among(names: Iterable[str], topics: Iterable[str] | None) -> list[str]:
    """Those that are a history's, of these topics (None: all)."""
    wanted = None if topics is None else frozenset(topics)
    found = []
    for name in names:
        partition = _KEYS.parse_history(name)
        if partition is not None and (wanted is None or partition.topic in wanted):
            found.append(name)
    return found
