"""From stored batches to Arrow rows: M records/s and MB/s of each kernel, on one core.

Run `python -m bench.pipeline_decode [--mib 64] [--kernels compiled,numpy]`. Batches of about 16 KiB
as producers write them, of random records (so that zstd and lz4 find what they find in keys and in
half of each value, which is text), given to `RowDecoder` 4 MiB at a time as a reader does; columns
as Spark's Kafka source has them. MB are stored bytes, M are 10^6 records, the best of several
rounds in turn; the last columns are ratios to the first kernel. `iterate` is
`protocol.records.record.iterate_records` alone, without Arrow, and `inflate` decompression alone:
what no kernel can undercut.
"""

import argparse
import random
import time
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from pipeline.plan.piece import PartitionName
from pipeline.read.decode.kernels import KERNEL_NAMES, load_kernel
from pipeline.read.decode.row_decoder import RowDecoder
from pipeline.read.decode.row_schema import KAFKA_COLUMNS
from protocol.records.batch import HEADER_SIZE, iterate_batches
from protocol.records.builder import build_batch
from protocol.records.compression import Codec, decompress
from protocol.records.record import iterate_records

CHUNK_BYTES = 4 << 20
BATCH_BYTES = 16 * 1024
COLUMNS = KAFKA_COLUMNS[:7]
NAME = PartitionName("orders", UUID(int=1), 0)
WORDS = b"order customer payment shipped address street number city country amount ".split()


class Case(NamedTuple):
    """One row of the table."""

    value_size: int
    codec: Codec


def make_log(case: Case, size: int) -> list[bytes]:
    """Chunks of whole batches, `size` bytes together before compression."""
    noise = random.Random(case.value_size)
    count = max(1, BATCH_BYTES // (case.value_size + 20))
    values = []
    for _ in range(500):
        half = case.value_size // 2
        text = b" ".join(noise.choices(WORDS, k=half // 4))[:half]
        values.append(text + noise.randbytes(case.value_size - len(text)))
    chunks: list[bytes] = []
    chunk = bytearray()
    offset = 0
    made = 0
    while made < size:
        records = [
            (b"key-%08d" % (offset + n), noise.choice(values), (), 1_700_000_000_000 + offset + n)
            for n in range(count)
        ]
        batch = build_batch(records, base_offset=offset, codec=case.codec)
        if len(chunk) + len(batch) > CHUNK_BYTES:
            chunks.append(bytes(chunk))
            chunk.clear()
        chunk += batch
        offset += count
        made += count * (case.value_size + 20)
    chunks.append(bytes(chunk))
    return chunks


def decode_all(chunks: list[bytes], decoder: RowDecoder) -> int:
    """Rows that came out."""
    return sum(
        piece.num_rows
        for chunk in chunks
        for piece in decoder.decode(memoryview(chunk), 0, 2**62, (), read_committed=True)
    )


def iterate_all(chunks: list[bytes]) -> int:
    """The same records by the walk of `protocol.records`."""
    rows = 0
    for chunk in chunks:
        view = memoryview(chunk)
        for position, header in iterate_batches(view):
            for _ in iterate_records(view[position : position + header.size], max_size=1 << 24):
                rows += 1
    return rows


def inflate_all(chunks: list[bytes]) -> int:
    """Decompress, and nothing else."""
    rows = 0
    for chunk in chunks:
        view = memoryview(chunk)
        for position, header in iterate_batches(view):
            payload = view[position + HEADER_SIZE : position + header.size]
            decompress(header.codec, payload, max_size=1 << 24)
            rows += header.records_count
    return rows


def seconds(function: Callable[[], int], expected: int) -> float:
    """CPU seconds of one round; the rows are counted."""
    began = time.process_time()
    rows = function()
    took = time.process_time() - began
    if rows != expected:
        raise AssertionError(f"{rows} rows instead of {expected}")
    return took


def measure(
    case: Case, size: int, kernels: list[str], rounds: int
) -> list[tuple[str, float, float]]:
    """(what, M records/s, MB/s) of each way through one log."""
    chunks = make_log(case, size)
    stored = sum(map(len, chunks))
    records = sum(
        header.records_count for chunk in chunks for _, header in iterate_batches(memoryview(chunk))
    )
    ways: dict[str, Callable[[], int]] = {}
    for name in kernels:
        decoder = RowDecoder(COLUMNS, NAME, load_kernel(name))
        ways[name] = lambda decoder=decoder: decode_all(chunks, decoder)  # type: ignore[misc]  # a default binds it
    ways["iterate"] = lambda: iterate_all(chunks)
    if case.codec:
        ways["inflate"] = lambda: inflate_all(chunks)
    best = dict.fromkeys(ways, float("inf"))
    for round_number in range(rounds):
        for name, way in ways.items():
            if round_number and name in {"plain", "iterate"}:
                continue
            best[name] = min(best[name], seconds(way, records))
    return [(name, records / took / 1e6, stored / took / 1e6) for name, took in best.items()]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=64, help="of records in each case")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kernels", default=",".join(KERNEL_NAMES))
    parser.add_argument("--codecs", default="none,zstd,lz4")
    parser.add_argument("--sizes", default="1024,100")
    arguments = parser.parse_args()
    kernels = arguments.kernels.split(",")
    print(f"{'records':16}{'way':10}{'M rec/s':>9}{'MB/s':>8}{'ratio':>7}")
    for size in map(int, arguments.sizes.split(",")):
        for codec in arguments.codecs.split(","):
            case = Case(size, Codec[codec.upper()])
            rows = measure(case, arguments.mib << 20, kernels, arguments.rounds)
            for name, rate, speed in rows:
                label = f"{size} B, {codec}"
                print(f"{label:16}{name:10}{rate:9.2f}{speed:8.0f}{rate / rows[0][1]:7.2f}")


if __name__ == "__main__":
    main()
