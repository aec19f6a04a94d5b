"""`varve tier restore`: make a node of what a bucket holds. No broker may run on its directories.

The node is empty before. Afterwards `varve serve` with the same settings serves the topics, with
what was in remote storage; what was only on the lost node's disk is gone.

The bucket stays as it is, but for its claim, and for manifests of which a bit has flipped: those
are put right. What is not restored is a problem, and the exit status says so: 1, also where the
rest was restored. It stays in the bucket. The cluster id is that of `cluster.id`, else the one
in the bucket; a bucket that another cluster has claimed is taken only with --take-ownership, and
that cluster must be gone for good: two would remove each other's segments.
"""

import argparse
import asyncio
import os
from typing import TYPE_CHECKING, Any

from cli.connection import FAILED, MISTAKEN, ClientFactory, CommandError, complain
from cli.options import topic_name
from cli.table import Cell, counted, format_json, format_size, format_table
from cli.tier.tier_bucket import add_bucket_arguments, bucket_settings, names_a_bucket, with_bucket

if TYPE_CHECKING:
    from broker.remote.restore import RestoreResult
    from config.broker import BrokerConfig
    from tiered.restore.restore import BucketContent
    from tiered.tier import Tier


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_bucket_arguments(parser)
    parser.add_argument(
        "--topic",
        type=topic_name,
        action="append",
        default=None,
        dest="topics",
        metavar="TOPIC",
        help="only this one; may be repeated",
    )
    parser.add_argument(
        "--log-dirs", metavar="DIR[,DIR]", help="where to (default: log.dirs of the settings)"
    )
    parser.add_argument(
        "--allow-gaps",
        action="store_true",
        help="keep records before a gap; otherwise a partition starts after its last gap, "
        "and older segments stay in the object store",
    )
    parser.add_argument(
        "--take-ownership", action="store_true", help="also from a bucket that another cluster owns"
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would be restored")


def restore(args: argparse.Namespace, _: ClientFactory) -> int:
    """Do it."""
    if not names_a_bucket(args):
        raise CommandError("name a bucket: --config, --bucket or --root", MISTAKEN)
    if args.log_dirs:
        args.assignments = [*args.assignments, f"log.dirs={args.log_dirs}"]
    settings = bucket_settings(args)
    from tiered.restore.restore import read_bucket

    if not args.dry_run:
        _check_node(settings)

    async def work(tier: "Tier") -> "tuple[BucketContent, str | None, RestoreResult | None]":
        content = await read_bucket(tier, topics=args.topics, allow_gaps=args.allow_gaps)
        if not content.topics:
            raise CommandError("there is nothing to restore in the object store")
        cluster_id = await _cluster_id(tier, settings, content, args.take_ownership)
        if args.dry_run:
            return content, cluster_id, None
        for key, data in content.repaired.items():
            # Readers need it as much as the restore does.
            await tier.put_object(key, data)
        return content, cluster_id, await _restore(tier, settings, content, cluster_id)

    content, cluster_id, result = with_bucket(settings, work)
    if args.json:
        print(format_json(_document(content, cluster_id, result)))
    else:
        print(_table(content))
        print(_summary(content, settings, result))
        for key in sorted(content.repaired):
            print(f"{'damaged' if result is None else 'repaired'}: {key}, one bit of it")
    problems = content.problems if result is None else result.problems
    for sentence in (*content.notes, *problems):
        complain(sentence)
    return FAILED if problems else 0


def _check_node(settings: "BrokerConfig") -> None:
    from broker.remote.restore import RestoreRefusedError, check_empty
    from storage.environment.local_filesystem import LocalFilesystem
    from storage.errors import StorageError

    try:
        filesystem = LocalFilesystem()
        check_empty(filesystem, _log_dirs(settings))
        for log_dir in _log_dirs(settings):
            filesystem.mkdir(log_dir)
    except (RestoreRefusedError, StorageError) as error:
        raise CommandError(str(error)) from error


def _log_dirs(settings: "BrokerConfig") -> list[str]:
    return [os.path.abspath(path) for path in settings.log_dirs]


async def _cluster_id(
    tier: "Tier", settings: "BrokerConfig", content: "BucketContent", take_ownership: bool
) -> str:
    """Whose the node will be."""
    from tiered.errors import ObjectNotFoundError
    from tiered.maintenance.bucket_ownership import CLAIM_KEY, decode_claim

    try:
        owner: str | None = decode_claim(await tier.get_object(CLAIM_KEY))
    except ObjectNotFoundError:
        owner = None
    wanted = settings.cluster_id
    if wanted is None:
        if len(content.cluster_ids) == 1:
            (wanted,) = content.cluster_ids
        elif owner is not None and (owner in content.cluster_ids or not content.cluster_ids):
            wanted = owner
        elif not content.cluster_ids:
            raise CommandError(
                "the segments name no cluster (Kafka's tiered storage plugin wrote them): "
                "set cluster.id",
                MISTAKEN,
            )
        else:
            found = ", ".join(sorted(content.cluster_ids))
            raise CommandError(f"segments of several clusters ({found}): set cluster.id", MISTAKEN)
    assert wanted is not None
    if owner not in (None, wanted) and not take_ownership:
        raise CommandError(
            f"the bucket is claimed by cluster {owner}, not {wanted}; if that cluster is gone for "
            "good: --take-ownership"
        )
    return wanted


async def _restore(
    tier: "Tier", settings: "BrokerConfig", content: "BucketContent", cluster_id: str
) -> "RestoreResult":
    from broker.controller.store.metadata_store import StoreError
    from broker.controller.store.sqlite_store import SqliteStore
    from broker.node.store_file import METADATA_FILE
    from broker.remote.restore import Restoring
    from broker.runtime.timer import TimerWheel
    from storage.environment.clock import SystemClock
    from storage.environment.local_filesystem import LocalFilesystem
    from storage.environment.randomness import SystemRandomness
    from tiered.maintenance.bucket_ownership import CLAIM_KEY, encode_claim

    log_dirs = _log_dirs(settings)
    clock = SystemClock()
    timer = TimerWheel(asyncio.get_running_loop(), clock)
    try:
        store = await SqliteStore.open(os.path.join(log_dirs[0], METADATA_FILE), timer=timer)
        try:
            restoring = Restoring(
                settings,
                content,
                cluster_id,
                log_dirs=log_dirs,
                filesystem=LocalFilesystem(),
                clock=clock,
                randomness=SystemRandomness(),
            )
            result = await restoring.run(store)
        finally:
            await store.aclose()
    except StoreError as error:
        raise CommandError(f"metadata store: {error}") from error
    finally:
        timer.close()
    await tier.put_object(CLAIM_KEY, encode_claim(cluster_id, clock.now_ms()))
    return result


def _table(content: "BucketContent") -> str:
    rows: list[list[Cell]] = []
    for name, topic in sorted(content.topics.items()):
        for index, restored in sorted(topic.partitions.items()):
            plan = restored.plan
            rows.append(
                [
                    f"{name}-{index}",
                    plan.log_start_offset,
                    plan.end_offset,
                    len(plan.segments),
                    format_size(plan.size_bytes),
                    len(plan.left_out) or None,
                ]
            )
    headings = ("PARTITION", "START", "END", "SEGMENTS", "SIZE", "LEFT OUT")
    return format_table(headings, rows)


def _summary(
    content: "BucketContent", settings: "BrokerConfig", result: "RestoreResult | None"
) -> str:
    if result is None:
        return f"would restore {counted(len(content.topics), 'topic')}; nothing was done"
    text = (
        f"restored {counted(result.topics, 'topic')}, {counted(result.partitions, 'partition')}, "
        f"{counted(result.segments, 'segment')}, {format_size(result.size_bytes)} "
        f"for {', '.join(settings.log_dirs)}"
    )
    if result.aborted_transactions:
        text += f"; aborted {counted(result.aborted_transactions, 'open transaction')}"
    return text


def _document(
    content: "BucketContent", cluster_id: str | None, result: "RestoreResult | None"
) -> dict[str, Any]:
    from storage.types.uuid_text import format_uuid

    return {
        "clusterId": cluster_id,
        "done": result is not None,
        "abortedTransactions": None if result is None else result.aborted_transactions,
        "topics": [
            {
                "topic": name,
                "topicId": format_uuid(topic.topic_id),
                "partitionCount": topic.facts.partitions,
                "overrides": dict(topic.facts.overrides),
                "partitions": [
                    {
                        "partition": index,
                        "start": restored.plan.log_start_offset,
                        "end": restored.plan.end_offset,
                        "segments": len(restored.plan.segments),
                        "bytes": restored.plan.size_bytes,
                        "gaps": [[gap.start, gap.end] for gap in restored.plan.gaps],
                        "leftOut": [
                            {
                                "start": one.segment.start_offset,
                                "end": one.segment.end_offset + 1,
                                "id": format_uuid(one.segment.id),
                                "reason": one.reason,
                            }
                            for one in restored.plan.left_out
                        ],
                    }
                    for index, restored in sorted(topic.partitions.items())
                ],
            }
            for name, topic in sorted(content.topics.items())
        ],
        "notes": content.notes,
        "problems": content.problems if result is None else result.problems,
        "repaired": sorted(content.repaired),
    }
