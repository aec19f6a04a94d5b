"""Left-over objects of a committed batch by key: runs, files of discarded plans, old states.

Runs are of no use once their batch is committed. States and files of deleted keys stay for
`STATES_KEPT` commits: a table that is rolled back continues from one of them.
"""

from collections.abc import Collection
from typing import Final

from pipeline.lake.batch.progress import Progress
from pipeline.lake.files.data_file import bucket_of
from pipeline.lake.keyed.state import DELETED_FOLDER, FOLDER, decode_state
from pipeline.lake.runs.run_file import FOLDER as RUNS
from pipeline.lake.sinks.base import Sink
from pipeline.lake.stores.table_store import TableStore

STATES_KEPT: Final = 50


def remove_runs(store: TableStore, progress: Progress) -> None:
    """Of this batch and all before, those of other plans and late writers among them."""
    prefix = f"{RUNS}{progress.topic_id.hex[:8]}-"
    done = [
        file.key
        for file in store.list(prefix)
        if int(file.key.removeprefix(prefix)[:20]) <= progress.batch
    ]
    if done:
        store.delete(done)


def remove_files(sink: Sink, progress: Progress, digests: Collection[str]) -> None:
    """Files that other plans wrote for the batch that is committed."""
    topic_id_start = progress.topic_id.hex[:8]
    left = [
        file.key
        for file in sink.store.list(sink.folder)
        if (named := bucket_of(file.key)) is not None
        and (named.topic_id_start, named.batch) == (topic_id_start, progress.batch)
        and named.fingerprint in digests
    ]
    if left:
        sink.store.delete(left)


def remove_states(store: TableStore, progress: Progress) -> None:
    """States older than those that are kept, and files of deleted keys that none of those names."""
    topic_id_start = progress.topic_id.hex[:8]
    prefix = f"{FOLDER}{topic_id_start}-"
    states = [file.key for file in store.list(prefix)]
    oldest = progress.batch - STATES_KEPT
    gone = [key for key in states if int(key.removeprefix(prefix)[:20]) < oldest]
    kept = [key for key in states if int(key.removeprefix(prefix)[:20]) >= oldest]
    if not gone or not kept:
        return
    named: set[str] = set()
    for key in kept:
        data = store.get(key)
        if data is None:
            return
        named.update(decode_state(data).deleted.values())
    deleted = f"{DELETED_FOLDER}{topic_id_start}-"
    for file in store.list(deleted):
        batch = int(file.key.removeprefix(deleted).split("-")[1])
        if batch < oldest and file.key not in named:
            gone.append(file.key)
    store.delete(gone)
