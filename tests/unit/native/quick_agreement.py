"""Hostile bytes for `native/quick.c`, in a process of its own: what it answers is what Python does.

python -c "..." LIBRARY SEED ATTEMPTS       prints, for each function, how often it answered,
and how often it left the bytes to the general code
"""

import contextlib
import random
import struct
import sys
from collections import Counter
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any, Final

from broker.transactions.partitions.transactional_produce import is_transactional
from config.topic import TopicConfig
from protocol import quick as python
from protocol.hot import fetch_decode, fetch_encode, follower_fetch, produce
from protocol.hot.fetch import FetchPartitionResponse, FetchRequest
from protocol.hot.produce import ProducePartitionResponse, ProduceRequest
from protocol.hot.wire import uvarint
from protocol.records.batch import HEADER_SIZE, crc32c
from protocol.records.builder import build_batch
from storage.errors import BatchError
from storage.log.validator import BatchValidator
from storage.types.append_origin import AppendOrigin

NUMBERS: Final = (2**15 - 1, 2**15, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -1, -(2**63))
NAMES: Final = ("t", "\u20ac" * 42, "n" * 126, "n" * 127, "\ud800", bytes(16))


def load(path: str) -> Any:
    """The module in C at `path`."""
    loader = ExtensionFileLoader("protocol.quick", path)
    spec = spec_from_file_location("protocol.quick", path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def compact(raw: bytes) -> bytes:
    """Bytes or a string with a compact length before it."""
    return uvarint(len(raw) + 1) + raw


def plain_produce(request: ProduceRequest) -> Any:
    """All that a request says."""
    topics = [
        (it.name, it.topic_id, [(i, None if r is None else bytes(r)) for i, r in it.partitions])
        for it in request.topics
    ]
    return request.transactional_id, request.acks, request.timeout_ms, topics


def plain_fetch(request: FetchRequest) -> Any:
    """All that a request says."""
    topics = [
        (it.name, it.topic_id, [[getattr(p, n) for n in p.__slots__] for p in it.partitions])
        for it in request.topics
    ]
    return topics, [getattr(request, name) for name in request.__slots__ if name != "topics"]


class Agreement:
    """Compares the two, function by function.

    Attributes:
        answered: How often a function of C answered.
        left: How often it left the bytes to the general code.
    """

    def __init__(self, quick: Any, seed: int) -> None:
        self.quick = quick
        self.noise = random.Random(seed)
        self.answered: Counter[str] = Counter()
        self.left: Counter[str] = Counter()
        self.config = TopicConfig()

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call a function of C; count whether it answers."""
        found = getattr(self.quick, name)(*arguments)
        (self.left if found is None else self.answered)[name] += 1
        return found

    def damaged(self, made: bytes | bytearray) -> bytearray:
        """The bytes as they are, or with some of them wrong, missing, or too many."""
        noise, found = self.noise, bytearray(made)
        if noise.random() < 0.5:
            for _ in range(noise.randrange(1, 3)):
                found[noise.randrange(len(found))] = noise.choice((0, 1, 2, 3, 13, 127, 128, 255))
        if noise.random() < 0.3:
            del found[noise.randrange(len(found) + 1) :]
        if noise.random() < 0.2:
            found += noise.randbytes(3)
        return found

    def batch(self) -> bytearray:
        """A whole batch of one record."""
        size = self.noise.choice((0, 9, 300, 5000))
        return bytearray(build_batch([(self.noise.choice((None, b"k")), bytes(size), (), 5)]))

    def one_topic(self, by_id: bool) -> bytes:
        """A topic with one partition, up to its index."""
        name = self.noise.choice((b"t", b"\xff\xc3\xa9", b"n" * 126, b"n" * 127, b""))
        topic = self.noise.randbytes(16) if by_id else compact(name)
        return b"\2" + topic + b"\2" + struct.pack(">i", self.noise.choice((0, 7, -1)))

    def compare_produce(self) -> None:
        """A Produce of one partition, more or less."""
        noise = self.noise
        by_id = noise.random() < 0.5
        body = noise.choice((b"\0", compact(b"id"), compact(b"\xff")))
        body += struct.pack(">hi", noise.choice((-1, 1)), 30) + self.one_topic(by_id)
        body += compact(bytes(self.batch())) + bytes(3)
        head = bytes(noise.randrange(4))
        data = memoryview(bytearray(head) + self.damaged(body))
        plain = self.ask("read_plain_produce", data, len(head), by_id)
        found = self.ask("read_produce", data, len(head), by_id)
        if found is None:
            assert plain is None
            return
        transactional_id, acks, timeout_ms, topic, index, records = found
        is_plain = python.is_one_batch(records, 9) and not is_transactional(records)
        assert (plain is not None) is (is_plain and transactional_id is None)
        if plain is not None:
            assert plain == found[1:]
            assert plain[4].obj is data.obj
        assert records.obj is data.obj
        assert not records.readonly
        name, topic_id = (None, topic) if by_id else (topic, b"")
        topics = [(name, topic_id, [(index, bytes(records))])]
        expected = produce._decode_flexible(data, len(head), by_id)
        assert plain_produce(expected) == (transactional_id, acks, timeout_ms, topics)

    def compare_fetch(self) -> None:
        """A Fetch of one partition or of none, more or less."""
        noise = self.noise
        version = noise.choice((12, 13, 15, 18))
        body = bytes(4) if version < 15 else b""
        body += struct.pack(">iiib", 500, 1, 2**31 - 1, noise.choice((0, 1)))
        body += struct.pack(">ii", noise.choice((0, 9)), noise.choice((0, -1)))
        if noise.random() < 0.7:
            offset = noise.choice((0, 2**40))
            body += self.one_topic(version >= 13)
            body += struct.pack(">iqiqi", -1, offset, -1, -1, 1 << 20) + bytes(2)
        else:
            body += b"\1"
        body += b"\1" + compact(noise.choice((b"", b"rack")))
        body += noise.choice((b"\0", b"\1\1\x0d" + struct.pack(">iqb", 3, 77, 0)))
        head = bytes(noise.randrange(4))
        data = memoryview(bytearray(head) + self.damaged(body))
        found = self.ask("read_fetch", data, len(head), version)
        if found is not None:
            expected = fetch_decode._decode_flexible(data, len(head), version)
            assert plain_fetch(fetch_decode._request_of(found)) == plain_fetch(expected)

    def compare_fetched(self) -> None:
        """A Fetch response of one partition, more or less, as a follower reads it."""
        noise = self.noise
        body = struct.pack(">ihi", 0, noise.choice((0, 70)), 9)
        body += b"\2" + noise.randbytes(16) + b"\2"
        body += struct.pack(">ihqqq", 4, noise.choice((0, 1)), 2**40, -1, 3)
        body += noise.choice((b"\0", b"\1")) + struct.pack(">i", -1)
        body += noise.choice((b"\0", b"\1", compact(bytes(self.batch())))) + bytes(3)
        data = memoryview(self.damaged(body))
        found = self.ask("read_fetched", data)
        if found is None:
            return
        answer = follower_fetch._decode(data)
        (part,) = answer.partitions
        assert found[:3] == (answer.throttle_time_ms, answer.error_code, answer.session_id)
        assert found[3:6] == (part.topic_id, part.partition, part.error_code)
        assert found[6:8] == (part.high_watermark, part.log_start_offset)
        assert bytes(found[8]) == bytes(part.records)
        assert part.diverging_epoch is None

    def compare_batch(self) -> None:
        """A client's batch, more or less, of a topic with narrow or wide limits."""
        noise = self.noise
        made = self.batch()
        for _ in range(noise.choice((0, 0, 1, 2))):
            byte = noise.choice((0, 1, 2, 0x10, 0x20, 0x28, 127, 128, 255))
            made[noise.randrange(HEADER_SIZE)] = byte
        if noise.random() < 0.2:
            made[27:35] = struct.pack(">q", -1)
        if noise.random() < 0.5:
            made[17:21] = struct.pack(">I", crc32c(bytes(made[21:])))
        if noise.random() < 0.2:
            made = self.damaged(made)
        records = memoryview(made)
        for version in (6, 7):
            expected = python.is_one_batch(records, version)
            assert self.quick.is_one_batch(records, version) is expected
        self.compare_places(made)
        now_ms = noise.choice((5, 0, 2**62))
        before_ms, after_ms = noise.choices((3, 2**63 - 1), k=2)
        size_max = noise.choice((100, 1 << 20))
        settings = {
            "max_message_bytes": size_max,
            "message_timestamp_before_max_ms": before_ms,
            "message_timestamp_after_max_ms": after_ms,
        }
        found = self.ask("plain_batch", records, size_max, now_ms - before_ms, now_ms + after_ms)
        validator = BatchValidator(self.config.model_copy(update=settings))
        before = bytes(made)
        headers = None
        with contextlib.suppress(BatchError):
            headers = validator.check(records, now_ms, AppendOrigin.CLIENT, True)
        if found is not None:
            assert headers == [found]
        elif headers is not None:
            # A client's LogAppendTime is rewritten, and several batches are not one.
            assert len(headers) > 1 or before != bytes(made)

    def compare_places(self, made: bytearray) -> None:
        """A batch is given its place, as far as there is one and the numbers fit."""
        noise = self.noise
        numbers = [noise.choice(NUMBERS) if noise.random() < 0.1 else 5 for _ in range(3)]
        position = noise.choice((0, 0, 7, len(made) - 16, len(made) - 15, len(made), -1, 2**63))
        done = []
        for place in (python.place_batch, self.quick.place_batch):
            target = bytearray(made)
            try:
                # Python counts a negative position from the end.
                place(memoryview(target), max(position, 0), *numbers)
            except (struct.error, IndexError, ValueError, OverflowError):
                target = bytearray()
            done.append(target)
        assert done[0] == done[1]

    def compare_frames(self) -> None:
        """Whole frames, and parts of one, of sizes that are allowed or not."""
        noise = self.noise
        made = b"".join(
            struct.pack(">i", size) + noise.randbytes(max(size, 0) % 300)
            for size in noise.choices((8, 9, 100, 299, 7, 0, -1, 300, 2**31 - 1), k=5)
        )
        start = noise.choice((0, 0, 3))
        end = start + noise.randrange(len(made) + 1)
        data = memoryview(bytearray(bytes(start) + made + bytes(9)))
        count_max = noise.choice((64, 64, 2))
        found = self.ask("split_frames", data, start, end, 8, 299, count_max)
        at = start
        expected: list[bytes] = []
        while at + 4 <= end and len(expected) < count_max:
            (size,) = struct.unpack_from(">i", data, at)
            if not 8 <= size <= 299 or at + 4 + size > end:
                break
            expected.append(bytes(data[at + 4 : at + 4 + size]))
            at += 4 + size
        assert (found is None) is (not expected)
        if found is not None:
            frames, after = found
            assert ([bytes(one) for one in frames], after) == (expected, at)
            assert all(one.obj is data.obj and not one.readonly for one in frames)

    def compare_headers(self) -> None:
        """Headers of requests, more or less, and of responses."""
        noise = self.noise
        made = struct.pack(">hhih", 0, 9, noise.choice((5, -1)), noise.choice((-1, 0, 3, 300)))
        data = memoryview(self.damaged(made + b"abcde"))
        for client_id in (b"abc", b"", b"abd", b"a" * 300):
            expected = python.read_header(data, client_id)
            assert self.quick.read_header(data, client_id) == expected
        for has_tags in (True, False):
            arguments = (noise.choice((7, -1)), has_tags, b"body", noise.choice((0, 9)))
            assert self.quick.frame_bytes(*arguments) == python.frame_bytes(*arguments)

    def compare_responses(self) -> None:
        """Responses with numbers that their fields can hold, and others."""
        noise = self.noise
        name = noise.choice(NAMES)
        numbers = [noise.choice(NUMBERS) if noise.random() < 0.1 else 5 for _ in range(9)]
        with contextlib.suppress(UnicodeEncodeError):
            index, code, base, time_ms, start, throttle_ms = numbers[:6]
            found = self.ask(
                "encode_produced", name, index, code, base, time_ms, start, throttle_ms
            )
            if found is not None:
                part = ProducePartitionResponse(index, code, base, time_ms, start)
                assert found == produce._encode_flexible([(name, [part])], 9, throttle_ms, ())
        length = noise.choice((0, 1, 126, 127, 1 << 14, 1 << 21, 1 << 28, 2**31 - 2, 2**31 - 1))
        aborted = noise.choice((None, ()))
        with contextlib.suppress(UnicodeEncodeError):
            throttle_ms, code, session, *rest = numbers
            index, error, mark, stable, start, replica = rest
            found = self.ask(
                "encode_fetched",
                *(name, throttle_ms, code, session),
                *(index, error, mark, stable, start, 0 if aborted is None else 1, replica, length),
            )
            if found is not None:
                fetched = FetchPartitionResponse(
                    index, error, mark, stable, start, aborted, replica, records=range(length)
                )
                topics = [(name, [fetched])]
                expected = fetch_encode._encode_flexible(topics, 12, throttle_ms, code, session, ())
                assert found == expected[0]

    def misuse(self) -> None:
        """Arguments that are none: an exception."""
        released = memoryview(bytearray(100))
        released.release()
        words = ("", b"", None, 1, released, memoryview(bytes(100))[::2])
        for function in python.__all__:
            for count in range(14):
                for first in words:
                    arguments = [first, *self.noise.choices(words, k=count)][:count]
                    with contextlib.suppress(TypeError, ValueError, OverflowError, BufferError):
                        getattr(self.quick, function)(*arguments)


def main() -> None:
    """Compare so often, and print how often C answered."""
    path, seed, attempts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    quick = load(path)
    assert {name for name in vars(quick) if not name.startswith("_")} == set(python.__all__)
    agreement = Agreement(quick, seed)
    for _ in range(attempts):
        agreement.compare_produce()
        agreement.compare_fetch()
        agreement.compare_fetched()
        agreement.compare_batch()
        agreement.compare_frames()
        agreement.compare_headers()
        agreement.compare_responses()
    agreement.misuse()
    for name in sorted(agreement.answered | agreement.left):
        sys.stdout.write(f"{name} {agreement.answered[name]} {agreement.left[name]}\n")
