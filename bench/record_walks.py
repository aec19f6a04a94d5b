"""What rules about records cost a broker: million records a second of one processor.

    python -m bench.record_walks [--seconds S]          C, where it is compiled
    VARVE_NATIVE=off python -m bench.record_walks       Python

Records of 100 bytes: a key of 10, a value of 80, 0.1 ms apart. CPU seconds, the best of three.
Validation and recompression are whole (`BatchValidator.prepare_batches`): header, sum, records,
and the sum of what is written. Cleaning is a whole run over one segment, disk calls included; of
3 MiB is an offset map from which recent keys are spilled.
"""

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path

from config.topic import TopicConfig
from protocol.records.batch import read_header, set_offset_and_epoch
from protocol.records.builder import build_batch
from storage.cleaner.cleaner import Cleaner
from storage.cleaner.cleaning import CleaningJob, SegmentSize
from storage.environment.local_filesystem import LocalFilesystem
from storage.log.validator import CODECS, BatchValidator
from storage.records.compiled_walks import load_compiled
from storage.types.log_files import LOG_SUFFIX, log_file_name

NOW_MS = 1_760_000_000_000
SIZES = {"1 record": 100, "5 records": 500, "16 KiB": 16 * 1024, "1 MiB": 1 << 20}
CLEANED_RECORDS = 100_000
CLEANED_BATCH = 160
REPEATS = 3
VALUES = bytes(random.Random(1).choices(b"abcdefghijklmnop", k=100_000))


def rows_of(
    first: int, number: int, keys: Callable[[], int]
) -> list[tuple[bytes, bytes, tuple[()], int]]:
    """Records of 100 bytes each; values of letters, so that they compress as JSON does."""
    return [
        (b"key%07d" % keys(), VALUES[at : at + 80], (), NOW_MS + index // 10)
        for index in range(first, first + number)
        for at in (random.randrange(len(VALUES) - 80),)
    ]


def rate(call: Callable[[], object], records: int, seconds: float) -> float:
    """Million records a second; `records` are what one call walks."""
    call()
    calls = 1
    while True:
        best = min(cpu_seconds(call, calls) for _ in range(REPEATS))
        if best * REPEATS >= seconds:
            return records * calls / best / 1e6
        calls = max(calls * 2, int(calls * seconds / REPEATS / max(best, 1e-6)) + 1)


def cpu_seconds(call: Callable[[], object], calls: int) -> float:
    """Of so many calls."""
    begin = time.process_time()
    for _ in range(calls):
        call()
    return time.process_time() - begin


def validation_rows(seconds: float) -> Iterator[tuple[str, float]]:
    """Batches of each size, by each rule."""
    full = TopicConfig().model_copy(update={"record_validation": "full"})
    compact = TopicConfig().model_copy(update={"cleanup_policy": ("compact",)})
    limit = {"max_message_bytes": 4 << 20}
    for name, size in SIZES.items():
        rows = rows_of(0, max(size // 100, 1), lambda: random.randrange(10**7))
        codecs = ("uncompressed",) if size < 1000 else ("uncompressed", "lz4", "zstd")
        for codec in codecs:
            batch = memoryview(build_batch(rows, codec=CODECS[codec]))
            cases = [("full", full)]
            if codec == "uncompressed":
                cases.append(("compact", compact))
                zstd = TopicConfig().model_copy(update={"compression_type": "zstd"})
                cases.append(("to zstd", zstd))
            lz4 = TopicConfig().model_copy(update={"compression_type": "lz4"})
            if codec != "lz4":
                cases.append(("to lz4", lz4))
            for rule, config in cases:
                validator = BatchValidator(config.model_copy(update=limit))
                call = partial(validator.prepare_batches, batch, NOW_MS)
                yield f"{name}, {codec}: {rule}", rate(call, len(rows), seconds)


def write_segments(folder: Path, batches: Sequence[bytearray]) -> list[SegmentSize]:
    """All batches in a segment, and an active one behind it that is empty."""
    offset = 0
    data = bytearray()
    for batch in batches:
        set_offset_and_epoch(batch, 0, offset, 0)
        offset += read_header(batch).records_count
        data += batch
    (folder / log_file_name(0, LOG_SUFFIX)).write_bytes(data)
    (folder / log_file_name(offset, LOG_SUFFIX)).write_bytes(b"")
    return [SegmentSize(0, len(data)), SegmentSize(offset, 0)]


def cleaning_rows() -> Iterator[tuple[str, float]]:
    """Whole runs of the cleaner."""
    cases = (("5,000 keys", 5000), ("as many keys", CLEANED_RECORDS), ("new keys only", 0))
    for name, keys in cases:
        chosen = partial(random.randrange, keys) if keys else count().__next__
        rows = rows_of(0, CLEANED_RECORDS, chosen)
        for codec in ("uncompressed", "lz4"):
            batches = [
                build_batch(rows[at : at + CLEANED_BATCH], codec=CODECS[codec])
                for at in range(0, CLEANED_RECORDS, CLEANED_BATCH)
            ]
            with tempfile.TemporaryDirectory(prefix="varve-walks-") as folder:
                job = CleaningJob(
                    directory=folder,
                    segments=tuple(write_segments(Path(folder), batches)),
                    first_dirty_offset=0,
                    first_uncleanable_offset=CLEANED_RECORDS,
                    now_ms=NOW_MS,
                    segment_bytes=1 << 30,
                    segment_index_bytes=10 << 20,
                    index_interval_bytes=4096,
                    delete_retention_ms=86_400_000,
                    last_records={},
                )
                for buffer in ("128 MiB",) if keys == 5000 else ("128 MiB", "3 MiB"):
                    size = int(buffer.split()[0]) << 20
                    cleaner = Cleaner(LocalFilesystem(), dedupe_buffer_bytes=size)
                    run = partial(cleaner.do, job, lambda *_: None)
                    best = min(cpu_seconds(run, 1) for _ in range(REPEATS))
                    yield f"clean, {name}, {codec}, {buffer}", CLEANED_RECORDS / best / 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=0.1, help="CPU seconds of a row")
    parser.add_argument("--only", choices=("validation", "cleaning"))
    arguments = parser.parse_args()
    random.seed(1)
    problem = "VARVE_NATIVE=off" if os.environ.get("VARVE_NATIVE") == "off" else load_compiled()[1]
    print(f"records are walked {'in Python: ' + problem if problem else 'in C'}\n")
    print(f"{'million records per CPU second':<52}")
    if arguments.only != "cleaning":
        for name, value in validation_rows(arguments.seconds):
            print(f"{name:<52} {value:7.2f}", flush=True)
    if arguments.only != "validation":
        for name, value in cleaning_rows():
            print(f"{name:<52} {value:7.2f}", flush=True)


if __name__ == "__main__":
    main()
