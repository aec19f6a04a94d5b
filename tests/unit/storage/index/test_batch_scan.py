"""Walking headers: the same for any sizes of batches, and stopping at what is no batch."""

from hypothesis import given
from hypothesis import strategies as st

from storage.index.batch_scan import read_batch_header, scan_headers
from tests.effort import examples
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import make_batch


@examples(50)
@given(st.lists(st.sampled_from([0, 1, 50, 4000, 5000, 70_000, 300_000]), max_size=12))
def test_every_header_is_found(sizes: list[int]) -> None:
    """In order, with its position, whatever the window holds."""
    filesystem = FakeFilesystem()
    file = filesystem.open("/a", create=True)
    positions = []
    end = 0
    for size in sizes:
        batch = make_batch(b"x" * size)
        file.write_at(batch, end)
        positions.append(end)
        end += len(batch)
    assert [position for position, _ in scan_headers(file, 0, end)] == positions
    if positions:
        assert [at for at, _ in scan_headers(file, positions[-1], end)] == positions[-1:]


def test_it_stops_before_what_is_no_whole_batch() -> None:
    """Cut off, zeros, another magic, a length that lies."""
    filesystem = FakeFilesystem()
    batch = bytes(make_batch(b"x" * 100))
    size = len(batch)
    wrong_magic = batch[:16] + b"\1" + batch[17:]
    short = batch[:8] + (20).to_bytes(4, "big") + batch[12:]
    long = batch[:8] + (1 << 30).to_bytes(4, "big") + batch[12:]
    negative = batch[:23] + b"\xff\xff\xff\xff" + batch[27:]
    for tail in (b"", batch[:-1], bytes(200), wrong_magic, short, long, negative, b"x" * 60):
        data = batch + tail
        filesystem.poke("/a", data)
        file = filesystem.open("/a")
        assert [position for position, _ in scan_headers(file, 0, len(data))] == [0]
        assert read_batch_header(file, size, len(data)) is None
        assert read_batch_header(file, -1, len(data)) is None


def test_small_batches_share_a_read() -> None:
    """And large ones cost a header's worth each."""
    filesystem = FakeFilesystem()
    file = filesystem.open("/a", create=True)
    batch = bytes(make_batch(b"x"))
    file.write_at(batch * 1000, 0)
    assert len(list(scan_headers(file, 0, len(batch) * 1000))) == 1000
    assert filesystem.reads < 20
