"""The batches of a `.log` file that are whole, and where reading ends."""

from pathlib import Path

from cli.records.dump_log_file import READ_BYTES, DumpOptions, read_batches, read_log
from protocol.records.builder import build_batch

FIRST = bytes(build_batch([(b"k", b"v1", (), 0)]))
SECOND = bytes(build_batch([(b"k", b"v2", (), 0)]))


def written(folder: Path, content: bytes) -> str:
    path = folder / f"{0:020d}.log"
    path.write_bytes(content)
    return str(path)


def test_a_batch_that_is_cut_off_ends_the_reading(tmp_path: Path) -> None:
    path = written(tmp_path, FIRST + SECOND[:-1])
    (position, batch, damage), (cut_at, nothing, why) = read_batches(path)
    assert (position, bytes(batch), damage) == (0, FIRST, None)
    assert (cut_at, bytes(nothing)) == (len(FIRST), b"")
    assert why is not None
    assert why.endswith(f"{len(SECOND) - 1} bytes not read")
    assert [row.get("damage") for row in read_log(path, DumpOptions())] == [None, why]


def test_zeros_are_preallocated_only_up_to_the_end(tmp_path: Path) -> None:
    """However far behind them something follows."""
    zeros = bytes(2 * READ_BYTES)
    assert len(list(read_batches(written(tmp_path, FIRST + zeros)))) == 1
    *_, last = read_batches(written(tmp_path, FIRST + zeros + b"\1"))
    assert last[0] == len(FIRST)
    assert last[2] is not None
