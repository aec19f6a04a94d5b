"""The limit sends what a broker would send, and a share is taken of both halves of it."""

import os
import socket
from pathlib import Path

import pytest

from bench import limit, wire
from bench.generator import LoadResult, added_up
from bench.limit import LimitError, LimitLog, beside_limit, compile_program, segments_of, serving
from bench.node import RunningNode
from native.build import find_compiler

BATCH = wire.record_batch([b"v" * 50] * 4)
TOPIC = "bench-7"

needs_compiler = pytest.mark.skipif(find_compiler(os.environ) is None, reason="no C compiler")


def _log(directory: Path, *counts: int) -> LimitLog:
    """Segments of so many batches each."""
    segments = []
    for place, count in enumerate(counts):
        segments.append(directory / f"{place:020}.log")
        segments[-1].write_bytes(b"".join(bytes([place]) + BATCH[1:] for _ in range(count)))
    return LimitLog(TOPIC, len(BATCH), 4, segments)


@needs_compiler
def test_an_answer_is_whole_batches_from_the_offset(tmp_path: Path) -> None:
    answers = []
    with (
        serving(_log(tmp_path, 5, 3)) as (port, _),
        socket.create_connection(("127.0.0.1", port)) as connection,
    ):
        for offset in (0, 8, 12, 20, 28, 32):
            connection.sendall(wire.fetch_frame(TOPIC, 0, offset, max_bytes=2 * len(BATCH) + 20))
            answers.append(bytes(wire.parse_fetch(wire.receive(connection)).records))
    second = b"\x01" + BATCH[1:]
    assert answers == [BATCH * 2, BATCH * 2, BATCH * 2, second * 2, second, b""]


@needs_compiler
def test_an_answer_that_the_socket_does_not_take_goes_on(tmp_path: Path) -> None:
    count = (16 << 20) // len(BATCH)
    with (
        serving(_log(tmp_path, count)) as (port, _),
        socket.create_connection(("127.0.0.1", port)) as connection,
    ):
        for _ in range(2):
            connection.sendall(wire.fetch_frame(TOPIC, 0, 0, max_bytes=32 << 20))
            records = wire.parse_fetch(wire.receive(connection)).records
            assert records == BATCH * count


def test_without_a_compiler_one_sentence_says_what_helps(tmp_path: Path) -> None:
    with pytest.raises(LimitError, match=r"no C compiler was found.*apt-get install gcc"):
        compile_program(limit.SOURCE, tmp_path, {"PATH": str(tmp_path)})


@needs_compiler
def test_what_the_compiler_says_is_shown(tmp_path: Path) -> None:
    broken = tmp_path / "limit.c"
    broken.write_text("int main(void) { return nothing; }\n")
    with pytest.raises(LimitError, match=r"(?s)limit.c failed:.*nothing"):
        compile_program(broken, tmp_path, os.environ)


def test_a_broker_that_was_there_has_no_known_segments() -> None:
    with pytest.raises(LimitError, match="varve runs already"):
        segments_of(RunningNode("varve", "127.0.0.1:9092", 1), TOPIC, 0)


def test_the_share_is_of_both_halves_together() -> None:
    before = LoadResult(10, 1.0, 3_000_000_000, 0.3, 0.5)
    after = LoadResult(10, 1.0, 1_000_000_000, 0.1, 0.5)
    ours = LoadResult(10, 2.0, 3_000_000_000, 0.6, 0.5)
    assert beside_limit(ours, before, after) == pytest.approx(
        {"limit_mb_per_s": 2000.0, "share_of_limit": 0.75, "cpu_x_limit": 2.0}
    )


def test_consumers_side_by_side_count_the_broker_once() -> None:
    first = LoadResult(10, 2.0, 1000, 0.50, 0.2)
    second = LoadResult(20, 2.1, 2000, 0.52, 0.3)
    assert added_up([first, second], [7, 7]) == LoadResult(30, 2.1, 3000, 0.52, 0.5)
    assert added_up([first, second], [7, 8]) == LoadResult(30, 2.1, 3000, 1.02, 0.5)


@needs_compiler
def test_a_program_that_does_not_start_is_named(tmp_path: Path) -> None:
    log = LimitLog(TOPIC, len(BATCH), 4, [tmp_path / "absent.log"])
    with pytest.raises(LimitError, match="limit ended with 1"), serving(log):
        pass
