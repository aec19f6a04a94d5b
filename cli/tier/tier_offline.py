"""`varve tier` on a bucket without a broker, by its manifests: list, verify, rotate keys."""

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

from cli.connection import FAILED, ClientFactory, CommandError, complain
from cli.options import topic_name
from cli.table import Cell, counted, format_json, format_size, format_table
from cli.tier.tier_bucket import add_bucket_arguments, bucket_settings, with_bucket

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.tier import TierConfig
    from tiered.format.manifest import SegmentManifest
    from tiered.metadata.history import HistorySummary
    from tiered.segment_metadata import RemoteLogSegmentMetadata, TopicIdPartition
    from tiered.tier import Tier


def list_bucket(args: argparse.Namespace) -> int:
    """Partitions and what there is of them; also what is damaged."""
    from tiered.metadata.history_reader import histories_among, read_histories
    from tiered.restore.bucket_manifests import read_manifests

    problems: list[str] = []
    topics = None if args.topic is None else [args.topic]
    by_partition: dict[TopicIdPartition, list[SegmentManifest]] = {}

    async def read(tier: "Tier") -> "Mapping[TopicIdPartition, HistorySummary]":
        objects: dict[str, int] = {}
        for one in await read_manifests(tier, problems, topics, objects=objects):
            by_partition.setdefault(one.metadata.partition, []).append(one)
        return await read_histories(tier, histories_among(objects, topics), problems)

    histories = with_bucket(bucket_settings(args), read)
    for who in histories:
        by_partition.setdefault(who, [])
    rows = [
        _row(who, segments, histories.get(who))
        for who, segments in sorted(by_partition.items(), key=lambda item: item[0][1:])
    ]
    if args.json:
        print(format_json(rows))
    elif not rows:
        print("no segments")
    else:
        cells: list[list[Cell]] = [
            [
                f"{row['topic']}-{row['partition']}",
                str(row["topicId"]) + (" (being deleted)" if row["deleting"] else ""),
                *(int(str(row[key])) for key in ("start", "end", "segments")),
                format_size(int(str(row["bytes"]))),
                format_size(int(str(row["storedBytes"]))),
            ]
            for row in rows
        ]
        headings = ("PARTITION", "TOPIC ID", "START", "END", "SEGMENTS", "SIZE", "STORED")
        print(format_table(headings, cells))
    for problem in problems:
        complain(problem)
    return FAILED if problems else 0


def _row(
    who: "TopicIdPartition", segments: "Sequence[SegmentManifest]", history: "HistorySummary | None"
) -> dict[str, object]:
    """What the bucket says of a partition; records below `start` are deleted or were never there.

    `committedEnd` is where rows end that are known to be committed without a broker, and
    `historyMs` when the broker wrote that; both null where there is no history.
    """
    starts = [one.metadata.start_offset for one in segments]
    ends = [one.metadata.end_offset + 1 for one in segments]
    log_start = 0 if history is None else history.log_start_offset
    return {
        "topic": who.topic,
        "topicId": _id(who),
        "partition": who.partition,
        "clusterId": segments[-1].topic.cluster_id if segments else history and history.cluster_id,
        "start": max(min(starts, default=log_start), log_start),
        "end": max(ends, default=log_start),
        "segments": len(segments),
        "bytes": sum(one.metadata.segment_size_bytes for one in segments),
        "storedBytes": sum(one.log_size + one.indexes_size for one in segments),
        "deleting": history is not None and history.state.name == "DELETING",
        "committedEnd": None if history is None else history.stable_end_offset,
        "historyMs": None if history is None else history.written_ms,
    }


def _id(who: "TopicIdPartition") -> str:
    from storage.types.uuid_text import format_uuid

    return format_uuid(who.topic_id)


def verify_bucket(args: argparse.Namespace) -> dict[str, Any]:
    """Read every segment of `args.which` (None: all); a document as of the broker's page."""
    return with_bucket(bucket_settings(args), lambda tier: _verify(tier, args.which))


async def _verify(tier: "Tier", which: dict[str, str] | None) -> dict[str, Any]:
    from tiered.errors import TieredError
    from tiered.maintenance.unanswered import Unanswered
    from tiered.metadata.history_reader import histories_among, verify_history

    unread: list[str] = []
    unanswered = Unanswered()
    topics = None if which is None else [which["topic"]]
    objects: dict[str, int] = {}
    manifests = await _manifests(tier, which, unread, objects)
    faulty: list[dict[str, object]] = []
    there: list[SegmentManifest] = []
    read = size = 0
    for position, one in enumerate(manifests, 1):
        metadata = one.metadata
        try:
            faults = await tier.verify_segment(metadata)
            if faults and await _is_removed(tier, metadata):
                continue
            there.append(one)
        except TieredError as error:
            there.append(one)
            unread.append(f"{metadata.partition} {metadata.id}: {error}")
            unanswered.failed(error)
            if unanswered.is_over:
                unread += unanswered.left(len(manifests) - position)
                break
            continue
        unanswered.answered()
        read += 1
        size += metadata.segment_size_bytes
        if faults:
            faulty.append(
                {
                    "topic": metadata.partition.topic,
                    "partition": metadata.partition.partition,
                    "start": metadata.start_offset,
                    "end": metadata.end_offset + 1,
                    "faults": [fault._asdict() for fault in faults],
                }
            )
    only = "" if which is None or "partition" not in which else f"/{which['partition']}/"
    history_faults = [
        fault
        for name in histories_among(objects, topics)
        if only in name and not unanswered.is_over
        for fault in await verify_history(tier, name)
    ]
    return {
        "historyFaults": history_faults,
        "missing": ([] if unanswered.is_over else await _missing(tier, which, there, objects)),
        "partitions": len({one.metadata.partition for one in there}),
        "segments": read,
        "bytes": size,
        "faulty": faulty,
        "unread": unread,
    }


async def _is_removed(tier: "Tier", metadata: "RemoteLogSegmentMetadata") -> bool:
    """Whether a segment's manifest, which goes first, has gone since it was listed.

    A broker may have removed it meanwhile. Had it no business to, its history names what is gone,
    or the offsets are missing.
    """
    from tiered.errors import ObjectNotFoundError
    from tiered.format.object_keys import ObjectKeys

    try:
        await tier.get_object(ObjectKeys().segment_keys(metadata).manifest)
    except ObjectNotFoundError:
        return True
    return False


async def _manifests(
    tier: "Tier", which: dict[str, str] | None, problems: list[str], objects: dict[str, int]
) -> "list[SegmentManifest]":
    """Those of `which`; `objects` gets the size of all that was listed, by name."""
    from tiered.restore.bucket_manifests import read_manifests

    topics = None if which is None else [which["topic"]]
    found = await read_manifests(tier, problems, topics, objects=objects)
    if which is None or "partition" not in which:
        return found
    return [one for one in found if one.metadata.partition.partition == int(which["partition"])]


async def _missing(
    tier: "Tier",
    which: dict[str, str] | None,
    manifests: "list[SegmentManifest]",
    objects: dict[str, int],
) -> list[str]:
    """Sentences about offsets that no segment has."""
    from tiered.metadata.history_reader import histories_among, read_histories
    from tiered.restore.restore import missing_offsets

    # Those that are damaged are told elsewhere.
    histories = await read_histories(tier, histories_among(objects, None), [])
    missing = await missing_offsets(tier, manifests, histories)
    if not missing:
        return []
    # A leader may have removed some, or replaced a copy, between the listing and a manifest.
    objects = {}
    manifests = await _manifests(tier, which, [], objects)
    histories = await read_histories(tier, histories_among(objects, None), [])
    again = frozenset(await missing_offsets(tier, manifests, histories))
    return [one for one in missing if one in again]


def rotate_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `rotate-keys`."""
    parser.add_argument("--topic", type=topic_name, metavar="TOPIC", help="default: all")
    add_bucket_arguments(parser)


def rotate_keys(args: argparse.Namespace, _: ClientFactory) -> int:
    """Wrap every data key with the active pair; may be stopped and begun again."""
    from broker.remote.tier_settings import tier_home, tier_settings
    from storage.environment.local_filesystem import LocalFilesystem

    given = bucket_settings(args)
    settings = tier_settings(given, tier_home(given, LocalFilesystem()))
    if not settings.rsm_config_encryption_enabled:
        raise CommandError("encryption is not enabled (rsm.config.encryption.enabled)")
    rewrapped, active, plain, faults = asyncio.run(_rotate(settings, args.topic))
    if args.json:
        document = {
            "keyPair": settings.rsm_config_encryption_key_pair_id,
            "rewrapped": rewrapped,
            "alreadyActive": active,
            "notEncrypted": plain,
            "faults": faults,
        }
        print(format_json(document))
    else:
        print(
            f"rewrapped {counted(rewrapped, 'key')} with "
            f"{settings.rsm_config_encryption_key_pair_id}; "
            f"{active} used it already, {plain} segments are not encrypted"
        )
    for fault in faults:
        complain(f"{fault['key']}: {fault['problem']}")
    if faults:
        complain("the old key pair is still needed")
    return FAILED if faults else 0


async def _rotate(
    settings: "TierConfig", topic: str | None
) -> tuple[int, int, int, list[dict[str, Any]]]:
    from storage.environment.clock import SystemClock
    from storage.environment.local_filesystem import LocalFilesystem
    from storage.environment.randomness import SystemRandomness
    from storage.errors import StorageError
    from tiered.errors import TieredError
    from tiered.format.key_ring import KeyRing
    from tiered.maintenance.key_rotation import rewrap_page
    from tiered.open_store import open_store

    filesystem, randomness = LocalFilesystem(), SystemRandomness()
    rewrapped = active = plain = 0
    faults: list[dict[str, Any]] = []
    try:
        ring = KeyRing.load(settings, filesystem, randomness)
        store = open_store(settings.store, filesystem, SystemClock(), randomness)
        try:
            continuation: str | None = None
            while True:
                # Also topics whose names go on after it: what is wrapped twice is only read.
                page = await rewrap_page(store, ring, f"{topic}-" if topic else "", continuation)
                rewrapped += page.rewrapped
                active += page.active
                plain += page.plain
                faults += [fault._asdict() for fault in page.faults]
                continuation = page.continuation
                if continuation is None:
                    return rewrapped, active, plain, faults
        finally:
            await store.close()
    except (TieredError, StorageError) as error:
        raise CommandError(f"object store: {error}") from error
