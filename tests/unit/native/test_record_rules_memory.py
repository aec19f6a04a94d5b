"""`native/record_rules.c` under sanitizers of addresses and behaviour, with hostile bytes."""

from collections.abc import Iterator

import pytest

from tests.effort import drawn
from tests.unit.native.sanitizers import run_sanitized, sanitized_source

SCRIPT = """
import ctypes, random, sys
from protocol.records.builder import append_record
from protocol.records.batch import read_header
from protocol.records.builder import build_batch
from storage.cleaner.compiled_offset_map import CompiledOffsetMap
from storage.records.compiled_walks import CompiledWalks, Times

walks = CompiledWalks(ctypes.CDLL(sys.argv[1]))
noise = random.Random(int(sys.argv[2]))
walked = refused = 0
for attempt in range(int(sys.argv[3])):
    made = bytearray()
    count = noise.randrange(1, 8)
    for index in range(count):
        append_record(
            made, index, noise.choice((0, -5, 2**40, 2**63 - 1, -2**63)),
            noise.choice((None, b"", bytes(noise.randrange(200)))),
            noise.choice((None, b"", bytes(noise.randrange(200)))),
            [("h\\u20ac\\U0001f600" * noise.randrange(3), noise.choice((None, b"v")))]
            * noise.randrange(3),
        )
    for _ in range(noise.randrange(4)):
        made[noise.randrange(len(made))] = noise.choice((0, 1, 0x7F, 0x80, 0xFF, 2, 0x0F, 0xF4))
    if attempt % 5 == 0:
        del made[noise.randrange(len(made)):]
    # From malloc, and as long as the block: what is read behind its 0 byte is another's.
    block = bytes(made)
    base = noise.choice((0, 5, 2**63 - 1, -2**63))
    whole = walks.check_block(block, count, base, -2**63, 2**63 - 1, attempt % 2 == 0)
    walked += whole
    refused += not whole
    walks.check_block(block, noise.choice((0, count + 1, 2**31 - 1)), base, 0, 0, False)
    kept = noise.choice((None, noise.randbytes((count + 7) // 8)))
    for append_time in (None, 7, 2**63 - 1):
        for new_base in (None, 5, -2**63):
            walks.cut_block(block, count, kept, Times(base, append_time, new_base))
    offset_map = CompiledOffsetMap(walks, 24 * noise.randrange(2, 12))
    header = read_header(build_batch([(b"k", b"v", (), 0)]))._replace(
        base_offset=noise.choice((0, 7, 2**63 - 1, -5)), records_count=count
    )
    for keys_max in (1, offset_map.slots - 1, offset_map.slots):
        offset_map.put_block(header, block, noise.choice((0, 9)), keys_max)
        offset_map.latest_in(header, block)
    offset_map.mark(noise.choice((0, 5, -(2**63))), bytearray(noise.randrange(1, 4)))
    offset_map.close()
print(walked, refused)
"""


@pytest.fixture(scope="module")
def sanitized() -> Iterator[tuple[str, str]]:
    """The source with sanitizers, and what has to be loaded before Python."""
    with sanitized_source("record_rules") as found:
        yield found


@pytest.mark.parametrize("seed", [1, 2])
def test_hostile_bytes_touch_no_other_memory(sanitized: tuple[str, str], seed: int) -> None:
    """Every array ends where what is in it ends."""
    attempts = drawn(3000, 5)
    done = run_sanitized(SCRIPT, sanitized, seed, attempts)
    assert done.returncode == 0, done.stderr[-3000:]
    walked, refused = map(int, done.stdout.split())
    assert walked > attempts // 10
    assert refused > attempts // 10
