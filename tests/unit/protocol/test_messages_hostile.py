"""What decoders do with bytes that lie: DecodeError, at once, and with little memory."""

import gc
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from protocol.api_keys import ApiKey
from protocol.codegen.schema import load
from protocol.errors import DecodeError
from protocol.message import REQUEST_ELEMENTS_MAX
from protocol.messages import create_partitions, fetch, metadata, module_of, offset_fetch
from protocol.primitives import encode_unsigned_varint
from tests.differential.random_messages import RandomMessages

APIS = {api.key: api for api in load()}
KEYS = pytest.mark.parametrize(
    "key", [ApiKey(api.key) for api in load()], ids=lambda key: key.name.lower()
)
MEBIBYTE = 1 << 20


def decoders(key: ApiKey) -> Iterator[tuple[Callable[[memoryview, int], Any], int, bytes]]:
    """Give the decoder of every version, with a valid body of some variety."""
    module = module_of(key)
    for version, struct in APIS[key].requests.items():
        message = RandomMessages(seed=version).message(module, struct)
        yield module.decode_request, version, module.encode_request(message, version)


def refused_or_read(decode: Callable[[memoryview, int], Any], data: bytes, version: int) -> bool:
    """Say whether the bytes were refused; any exception but DecodeError fails the test."""
    try:
        decode(memoryview(data), version)
    except DecodeError:
        return True
    return False


@KEYS
def test_a_body_that_ends_early_is_refused_at_every_byte(key: ApiKey) -> None:
    """A message never ends before its last byte."""
    for decode, version, data in decoders(key):
        for size in range(len(data)) if len(data) < 400 else range(0, len(data), 7):
            assert refused_or_read(decode, data[:size], version), (version, size)


@KEYS
def test_false_lengths_and_counts(key: ApiKey) -> None:
    """Every place of a valid body overwritten with what a large or negative length looks like."""
    lies = [b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\x00"]
    for decode, version, data in decoders(key):
        for lie in lies:
            for position in range(0, len(data), 1 if len(data) < 300 else 11):
                changed = data[:position] + lie + data[position + len(lie) :]
                refused_or_read(decode, changed, version)


@KEYS
def test_random_bytes(key: ApiKey) -> None:
    """Of many lengths, and with small values, which get further."""
    chance = random.Random(key)
    for decode, version, _ in decoders(key):
        for _ in range(60):
            data = chance.randbytes(chance.randrange(200))
            refused_or_read(decode, data, version)
            refused_or_read(decode, bytes(byte & 3 for byte in data), version)


@KEYS
def test_a_mebibyte_of_one_byte(key: ApiKey) -> None:
    """0xFF first of all: an endless varint, a length of -1 and of 4 GiB."""
    bodies = [bytes([value]) * MEBIBYTE for value in (0xFF, 0x00, 0x01, 0x02, 0x7F, 0x80)]
    for decode, version, _ in decoders(key):
        for body in bodies:
            start = time.thread_time()
            refused_or_read(decode, body, version)
            assert time.thread_time() - start < 1.0, (version, body[:1])


@KEYS
def test_lies_take_no_memory(key: ApiKey) -> None:
    """Decoding 64 KiB of any value takes less than a hundred bytes for each of them."""
    bodies = [bytes([value]) * 65_536 for value in (0xFF, 0x01, 0x02, 0x7F)]
    bodies += [b"\x7f\xff\xff\xff" * 16_384, b"\xff\xff\xff\xff\x0f" * 13_000]
    tracemalloc.start()
    try:
        for decode, version, _ in decoders(key):
            for body in bodies:
                tracemalloc.reset_peak()
                before, _ = tracemalloc.get_traced_memory()
                refused_or_read(decode, body, version)
                assert tracemalloc.get_traced_memory()[1] - before < 100 * len(body)
    finally:
        tracemalloc.stop()


def test_thirteen_bytes_that_claim_four_billion_topics() -> None:
    """Metadata v12: nothing is set aside for them."""
    body = b"\xff\xff\xff\xff\x0f" + bytes(8)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match="4294967294 elements"):
            metadata.decode_request(memoryview(body), 12)
        assert tracemalloc.get_traced_memory()[1] < 65_536
    finally:
        tracemalloc.stop()


def test_integers_that_are_not_there() -> None:
    """OffsetFetch v1: a list of 2**29 partitions needs 2 GiB of bytes, and has none."""
    body = b"\x00\x01g" + b"\x00\x00\x00\x01" + b"\x00\x01t" + b"\x20\x00\x00\x00"
    with pytest.raises(DecodeError, match="partition_indexes claims"):
        offset_fetch.decode_request(memoryview(body), 1)


def test_number_of_elements_is_limited_over_the_whole_request() -> None:
    """As many as allowed are read; one more is refused, also when they stand in several lists."""
    half = REQUEST_ELEMENTS_MAX // 2
    topics = [
        create_partitions.CreatePartitionsTopic(name="a"),
        create_partitions.CreatePartitionsTopic(name="b"),
    ]
    request = create_partitions.CreatePartitionsRequest(topics=topics)
    assignment = create_partitions.CreatePartitionsAssignment()
    topics[0].assignments = [assignment] * half
    topics[1].assignments = [assignment] * (half - len(topics))
    data = create_partitions.encode_request(request, 3)
    assert create_partitions.decode_request(data, 3) == request
    topics[1].assignments.append(assignment)
    data = create_partitions.encode_request(request, 3)
    with pytest.raises(DecodeError, match=f"more than {REQUEST_ELEMENTS_MAX} elements"):
        create_partitions.decode_request(data, 3)


def test_number_of_unknown_tags_counts_too() -> None:
    """A tag takes two bytes; ten million would take seconds to step over."""
    count = 1_000_000
    body = b"\x01\x01\x00" + encode_unsigned_varint(count) + b"\x09\x00" * count
    start = time.thread_time()
    with pytest.raises(DecodeError, match="elements"):
        metadata.decode_request(memoryview(body), 12)
    assert time.thread_time() - start < 1.0


def test_a_request_of_the_allowed_size_takes_bounded_time() -> None:
    """The largest Metadata request that passes the limit is read in a part of a second."""
    topic = metadata.MetadataRequestTopic(name="")
    data = metadata.encode_request(
        metadata.MetadataRequest(topics=[topic] * REQUEST_ELEMENTS_MAX), 12
    )
    # Objects of other tests are not to be walked meanwhile, as often as these many are made.
    gc.collect()
    gc.disable()
    try:
        start = time.thread_time()
        metadata.decode_request(data, 12)
        assert time.thread_time() - start < 1
    finally:
        gc.enable()


def test_records_cut_short_are_refused() -> None:
    """The view would be shorter than the length says; so would a fetched partition's."""
    partition = fetch.PartitionData(records=b"0123456789")
    response = fetch.FetchResponse(responses=[fetch.FetchableTopicResponse(partitions=[partition])])
    for version in range(4, 12):
        data = fetch.encode_response(response, version)
        for size in range(len(data)):
            with pytest.raises(DecodeError):
                fetch.decode_response(memoryview(data)[:size], version)


@KEYS
def test_responses_that_lie_are_refused_as_well(key: ApiKey) -> None:
    """Our own client tools read them."""
    module = module_of(key)
    chance = random.Random(key)
    for version, struct in APIS[key].responses.items():
        data = module.encode_response(RandomMessages(seed=1).message(module, struct), version)
        for size in range(0, len(data), 5):
            assert refused_or_read(module.decode_response, data[:size], version)
        for _ in range(30):
            refused_or_read(module.decode_response, chance.randbytes(100), version)
