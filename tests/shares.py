"""Which modules of tests a run has, and the share that each of its processes takes.

To collect 16,000 tests takes a process longer than to run a tenth of them; so each process of the
fast tier is given modules of its own, and collects no others. It is not asked for more when it has
done them, so the shares should take equally long.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

SLOWER_FOLDERS: Final = {"system": "system", "checker": "system", "interop": "interop"}
"""Which slower tier the tests of a folder belong to; those of all others are fast."""

COSTLY: Final[dict[str, float]] = {
    "contract/test_metadata_store.py": 9,
    "contract/test_object_store.py": 11,
    "contract/test_table_sink.py": 5,
    "differential/test_kafka_python.py": 3,
    "interop/libraries/test_library_matrix.py": 3,
    "simulation/clients/test_leavers.py": 2,
    "simulation/test_run.py": 8,
    "simulation/test_simulation.py": 7,
    "system/broker/test_process.py": 8,
    "test_architecture.py": 9,
    "test_pytest_runs.py": 4,
    "test_tiers.py": 5,
    "test_words.py": 3,
    "unit/native/test_build.py": 2,
    "unit/native/test_build_modules.py": 14,
    "unit/native/test_records_memory.py": 3,
    "unit/pipeline/lake/job/test_job.py": 4,
    "unit/pipeline/lake/job/test_quarantine.py": 5,
    "unit/pipeline/lake/job/test_s3_tables.py": 4,
    "unit/pipeline/lake/keyed/test_table.py": 5,
    "unit/pipeline/lake/maintain/test_compaction.py": 3,
    "unit/pipeline/lake/maintain/test_delta_history.py": 2,
    "unit/pipeline/lake/maintain/test_iceberg_history.py": 2,
    "unit/pipeline/lake/maintain/test_left_over.py": 3,
    "unit/pipeline/lake/maintain/test_upkeep.py": 3,
    "unit/pipeline/lake/reconcile/test_reconcile.py": 4,
    "unit/pipeline/lake/sinks/test_continuity.py": 7,
    "unit/pipeline/lake/sinks/test_delta_history.py": 4,
    "unit/pipeline/read/bytes/test_chunk_stream.py": 4,
    "unit/pipeline/read/decode/test_record_window.py": 11,
    "unit/pipeline/read/decode/test_row_decoder.py": 9,
    "unit/pipeline/read/test_memory.py": 2,
    "unit/pipeline/read/test_random_worlds.py": 3,
    "unit/protocol/hot/test_fetch.py": 2,
    "unit/protocol/test_messages_hostile.py": 3,
    "unit/protocol/test_records_compression.py": 4,
    "unit/protocol/test_records_keys.py": 4,
    "unit/storage/log/recovery/test_log_crash.py": 7,
    "unit/storage/log/recovery/test_log_damage.py": 4,
    "unit/storage/log/test_log_full_disk.py": 3,
    "unit/storage/log/test_log_model.py": 2,
    "unit/storage/manager/test_log_moves.py": 3,
    "unit/tiered/object_store/s3/test_store.py": 6,
    "unit/tiered/tasks/test_copier_crashes.py": 2,
    "unit/tiered/tasks/test_history_keeper.py": 4,
    "unit/tiered/worker/test_entry.py": 5,
    "unit/tiered/worker/test_supervisor.py": 3,
}
"""Seconds of a busy machine's core; modules that take less than two are counted by their size."""

SECONDS_OF_BYTE: Final = 0.3 / 10_000

_NEVER_FAST: Final = re.compile(rb"^pytestmark = .*\b(slow|spark|clients)\b", re.MULTILINE)

_SLOWER: Final = re.compile(rb"^pytestmark = .*\b(interop|system)\b", re.MULTILINE)


def fast_modules(tests: Path) -> list[Path]:
    """Modules below `tests` that have tests of the fast tier, in order.

    A few have none, since it is tests that are marked: these are collected, and left out by pytest.
    """
    return [path for path in sorted(tests.rglob("test_*.py")) if _may_be_fast(path, tests)]


def _may_be_fast(path: Path, tests: Path) -> bool:
    text = path.read_bytes()
    if _NEVER_FAST.search(text):
        return False
    is_slower = path.relative_to(tests).parts[0] in SLOWER_FOLDERS or _SLOWER.search(text)
    return not is_slower or b"quick" in text


def cost(path: Path, tests: Path) -> float:
    """Seconds of a core, about."""
    known = COSTLY.get(path.relative_to(tests).as_posix())
    return path.stat().st_size * SECONDS_OF_BYTE if known is None else known


def shares(modules: Sequence[Path], costs: Iterable[float], count: int) -> list[list[Path]]:
    """Divide modules into `count` shares that cost about the same, none of them empty if possible.

    Neighbours stay together: they import the same.
    """
    by_module = list(zip(modules, costs, strict=True))
    total = sum(each for _, each in by_module)
    found: list[list[Path]] = [[] for _ in range(count)]
    before = 0.0
    for module, each in by_module:
        middle = before + each / 2
        found[min(int(middle * count / total), count - 1)].append(module)
        before += each
    return [share for share in found if share]
