"""Left-over objects of a committed batch: its plans, and files of discarded plans.

Such files can be committed no more: the table has passed their base. A reader of a folder of
Parquet files would see their rows beside the table's.
"""

import logging

from pipeline.lake.batch.batch_plan import BatchPlan, PlanShelf, TaskRange
from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import TableUnavailableError
from pipeline.lake.files.data_file import range_of
from pipeline.lake.keyed.leftovers import remove_files, remove_runs, remove_states
from pipeline.lake.keyed.table import plan_digest
from pipeline.lake.sinks.base import Sink

LOGGER = logging.getLogger(__name__)


def clean_up(sink: Sink, plan: BatchPlan, committed: Progress) -> None:
    """Remove all plans of the batch, and the files of those that are not `plan`.

    Args:
        sink: The table.
        plan: That was committed.
        committed: With it.
    """
    shelf = PlanShelf(sink.store)
    try:
        others = shelf.others(plan)
        if committed.keyed:
            if others:
                remove_files(sink, committed, {plan_digest(other) for other in others})
            remove_runs(sink.store, committed)
            remove_states(sink.store, committed)
        else:
            for other in others:
                _remove_files(sink, other)
        shelf.forget(plan.base)
    except TableUnavailableError as error:
        LOGGER.info("%s; left-over objects of the batch are kept for the next batch", error)


def _remove_files(sink: Sink, plan: BatchPlan) -> None:
    tasks = set(plan.tasks)
    topic_id_start = plan.base.topic_id.hex[:8]
    left = []
    for file in sink.store.list(sink.folder):
        named = range_of(file.key)
        if (
            named is not None
            and (named.topic_id_start, named.fingerprint) == (topic_id_start, plan.fingerprint)
            and TaskRange(named.partition, named.start, named.end) in tasks
        ):
            left.append(file.key)
    if left:
        sink.store.delete(left)
