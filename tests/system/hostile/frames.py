"""Hostile frames by the million: real ones and random valid ones, bent in every way we know of."""

import json
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from typing_extensions import override

from broker.lifecycle.apis import handler_modules
from protocol.api_keys import ApiKey
from protocol.codegen.schema import Field, Struct, load
from protocol.headers import encode_request_header
from protocol.messages import module_of
from protocol.records.batch import update_crc
from protocol.records.builder import build_batch
from tests.differential.random_messages import BOUNDS, RandomMessages

GOLDEN: Final = Path(__file__).resolve().parents[2] / "golden" / "frames.jsonl"

SERVED: Final[dict[int, tuple[int, int]]] = {
    int(module.API_KEY): module.VERSIONS for module in handler_modules()
}
"""API key -> (lowest, highest version served)."""

KINDS: Final = [
    (key, version)
    for key, (low, high) in sorted(SERVED.items())
    for version in range(low, high + 1)
]
"""Every served (API key, version)."""

TOPICS: Final = ("orders", "compacted", "walked", "packed", "a")
"""Topics that exist; `open_world` gives them their settings."""

STRINGS: Final = (
    *(*TOPICS, *TOPICS, "g1", "g2", "g1", "consumer", "range", "__consumer_offsets"),
    *("", "Überraschung", "🦀", "x" * 126, "y" * 127, "z" * 300, "..", "a/b", "\0", "\ud7ff", "0"),
    *("cleanup.policy", "compact", "retention.ms", "1", "-1", "broker", "1.5", "max.message.bytes"),
)
INT32_LIES: Final = (2**31 - 1, -1, -2, -(2**31), 2**24, 65_535, 1000, 0)
VARINT_LIES: Final = (
    *(b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\x80\x80\x80\x80\x08", b"\x80" * 6),
    *(b"\xff\xff\x03", b"\xff" * 10, b"\x00", b"\x80\x00"),
)
BYTES: Final = (0, 1, 0x7F, 0x80, 0xFF, 0xFE, 2, 0x0C)


class PlausibleMessages(RandomMessages):
    """Random messages that name topics and groups that exist, so that handlers get to work."""

    def __init__(self, seed: int, topic_ids: list[UUID]) -> None:
        super().__init__(seed)
        self.topic_ids = topic_ids

    @override
    def _scalar(self, module: Any, field: Field, depth: int) -> Any:
        chance = self._random
        match field.type:
            case "string":
                return chance.choice(STRINGS)
            case "uuid" if self.topic_ids and chance.random() < 0.6:
                return chance.choice(self.topic_ids)
            case "records":
                return bytes(self.records())
            case "int32" if chance.random() < 0.7:
                return chance.choice((0, 0, 0, 1, 2, 3, 100, 1000, -1))
            case "int16" if chance.random() < 0.7:
                return chance.choice((0, 1, -1, 2))
            case "int64" if chance.random() < 0.7:
                return chance.choice((0, 1, 10, -1, -2, 1000))
            case "int8":
                low, high = BOUNDS["int8"]
                return chance.choice((0, 1, 2, 0, 1, low, high))
        return super()._scalar(module, field, depth)

    def records(self) -> bytearray:
        """A batch of any codec, often damaged, with a sum that is right as often as not."""
        chance = self._random
        if chance.random() < 0.1:
            return bytearray(chance.randbytes(chance.choice((0, 1, 11, 12, 60, 61, 200))))
        now_ms = 1_800_000_000_000
        batch = build_batch(
            [
                (
                    chance.choice((None, b"", b"key")),
                    chance.choice((None, b"", b"value" * chance.choice((1, 20)))),
                    chance.choice(((), (("h", b"1"), ("h", None)))),
                    now_ms + chance.randint(-5, 5),
                )
                for _ in range(chance.choice((1, 1, 2, 10)))
            ],
            codec=chance.choice((0, 0, 1, 2, 3, 4)),
            producer_id=chance.choice((-1, -1, 0, 1, 5)),
            producer_epoch=chance.choice((0, 0, 1)),
            base_sequence=chance.choice((0, 0, 1, 10)),
            transactional=chance.random() < 0.05,
            control=chance.random() < 0.05,
        )
        if chance.random() < 0.5:
            for _ in range(chance.randint(1, 3)):
                batch[chance.randrange(len(batch))] = chance.choice(BYTES)
            if chance.random() < 0.6:
                # Kept whole in its outer length, so that the damage inside is what is looked at.
                struct.pack_into(">i", batch, 8, len(batch) - 12)
                update_crc(memoryview(batch), 0, len(batch))
        return batch


def golden_requests() -> list[bytes]:
    """Requests real clients sent, of APIs and versions that are served."""
    found = []
    for line in GOLDEN.read_text().splitlines():
        frame = json.loads(line)
        low, high = SERVED.get(frame["api_key"], (1, 0))
        if frame["direction"] == "request" and low <= frame["version"] <= high:
            found.append(bytes.fromhex(frame["hex"]))
    return found


def _structs() -> dict[tuple[int, int], Struct]:
    return {(api.key, v): struct for api in load() for v, struct in api.requests.items()}


class HostileFrames:
    """An endless supply; the same seed gives the same frames (without their size in front).

    `valid()` makes a frame that can be read, of every (API, version) in turn; `bent()` damages one.
    """

    def __init__(self, seed: int, topic_ids: list[UUID] | None = None) -> None:
        self._random = random.Random(seed)
        self._messages = PlausibleMessages(seed, topic_ids or [])
        self._structs = _structs()
        self._golden = golden_requests()
        self._turn = 0

    def encoded(self, key: int, version: int) -> bytes:
        """A random valid request of one kind, with its header."""
        module = module_of(ApiKey(key))
        while True:
            message = self._messages.message(module, self._structs[key, version])
            try:
                body: bytes = module.encode_request(message, version)
            except ValueError:
                # A value this version has no room for: try another.
                continue
            client_id = self._random.choice(("client", "client", "__admin_client", None, ""))
            correlation_id = self._random.randrange(2**31)
            return encode_request_header(key, version, correlation_id, client_id) + body

    def valid(self) -> bytes:
        """A frame that is as it should be."""
        if self._random.random() < 0.1:
            return self._random.choice(self._golden)
        self._turn = (self._turn + 1) % len(KINDS)
        return self.encoded(*KINDS[self._turn])

    def bent(self) -> bytes:
        """A frame that is not."""
        chance = self._random
        frame = bytearray(self.valid())
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            self._bend(frame)
        # A frame below 8 bytes is refused by its size alone, before anybody looks at it.
        frame += bytes(max(8 - len(frame), 0))
        return bytes(frame)

    def _bend(self, frame: bytearray) -> None:
        chance = self._random
        if not frame:
            return
        # Most lies belong into the body: a bent header mostly means an API that is not served.
        at = chance.randrange(min(4 if chance.random() < 0.05 else 10, len(frame) - 1), len(frame))
        match chance.randrange(11):
            case 0:
                frame[at] ^= 1 << chance.randrange(8)
            case 1:
                frame[at] = chance.choice(BYTES)
            case 2:
                del frame[at:]
            case 3:
                del frame[at : at + chance.choice((1, 2, 4, 16))]
            case 4:
                frame[at:at] = chance.randbytes(chance.choice((1, 2, 4, 16)))
            case 5:
                frame[at : at + 4] = struct.pack(">i", chance.choice(INT32_LIES))
            case 6:
                lie = chance.choice(VARINT_LIES)
                frame[at : at + chance.choice((1, len(lie)))] = lie
            case 7:
                end = at + chance.choice((4, 16, 64))
                frame[at:at] = frame[at:end] * chance.choice((1, 2, 50))
            case 8:
                other = self.valid()
                frame[at:] = other[chance.randrange(len(other)) :]
            case 9:
                frame[at : at + 2] = struct.pack(">h", chance.choice((-1, -2, 32_767, -32_768, 0)))
            case 10:
                self._bend_header(frame)

    def _bend_header(self, frame: bytearray) -> None:
        chance = self._random
        match chance.randrange(4):
            case 0:
                frame[2:4] = struct.pack(">h", chance.choice((-1, 0, 1, 5, 9, 12, 13, 99, 32_767)))
            case 1:
                frame[0:2] = struct.pack(">h", chance.randrange(-2, 95))
            case 2:
                frame[8:10] = struct.pack(">h", chance.choice((-2, -32_768, 0, 1, 3, 32_767)))
            case 3:
                frame[10:10] = chance.choice(VARINT_LIES)

    def mixture(self) -> Iterator[bytes]:
        """One valid frame for four bent ones, for ever."""
        while True:
            yield self.valid() if self._random.random() < 0.2 else self.bent()

    def systematic(self, key: int, version: int, step: int = 1) -> Iterator[bytes]:
        """Cut one valid frame at every `step`th byte, then tell a lie at every `step`th byte."""
        frame = self.encoded(key, version)
        while not 20 < len(frame) < 400:
            frame = self.encoded(key, version)
            if self._random.random() < 0.05:
                break
        yield frame
        start = self._random.randrange(step)
        for end in range(8 + start, len(frame), step):
            yield frame[:end]
        for at in range(8 + start, len(frame), step):
            for number in (2**31 - 1, -1, -(2**31)):
                yield frame[:at] + struct.pack(">i", number) + frame[at + 4 :]
            for lie in VARINT_LIES[:3]:
                yield frame[:at] + lie + frame[at + 1 :]
