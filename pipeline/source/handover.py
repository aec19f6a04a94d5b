"""End offsets of the bucket, as JSON from which a query of Spark's Kafka source continues.

offsets = pipeline.handover({"path": "s3://bucket/prefix", "subscribe": "orders"})
spark.readStream.format("kafka").option("startingOffsets", offsets)...
"""

from collections.abc import Mapping

from pipeline.plan.errors import OptionsError, PlanError
from pipeline.source.bucket_view import Views
from pipeline.source.options.offsets import EARLIEST, format_offsets
from pipeline.source.options.options import parse_options
from pipeline.source.planner import Planner


def handover(options: Mapping[str, str]) -> str:
    """The offsets behind the last rows of the bucket, of every partition.

    Args:
        options: Those of the data source; `isolationLevel` matters: committed rows of a bucket end
            before the first transaction that is open in it. With `kafka.bootstrap.servers` the
            bucket's end is compared with the broker's history.

    Returns:
        The option `startingOffsets`; a partition of which nothing was copied begins at -2, the
        earliest offset.

    Raises:
        OptionsError: Every mistake in the options; among them `tier=broker`.
        PlanError, ReadError, RemoteStorageError: As `Planner.view`; the bucket is another history
            than the broker's.
    """
    parsed = parse_options(options)
    if parsed.bucket is None:
        raise OptionsError(["tier=broker has no bucket to hand over from"])
    with Planner(parsed) as planner:
        views = planner.view()
    return ends_of(views)


def ends_of(views: Views) -> str:
    """The same of a view.

    Raises:
        PlanError: The bucket is another history than the broker's.
    """
    problems = [view.problem for view in views.values() if view.problem]
    if problems:
        raise PlanError("; ".join(problems))
    return format_offsets(
        {
            partition: view.handover if view.log is not None else EARLIEST
            for partition, view in views.items()
        }
    )
