"""kafka-python, the client library behind the commands that talk to a broker.

Importing this module loads the library, which takes a tenth of a second: commands import it inside
functions, so that `varve --help` and a mistyped option are answered at once. It also

- keeps the library's own log lines away from the terminal: a command prints one clear line of its
  own when something is wrong,
- lends it snappy and zstd. The library imports two packages that are not among our dependencies;
  we have both codecs already (`protocol.records.compression`).
"""

import io
import logging
import warnings
from typing import Final

import cramjam

from protocol.records.compression import Codec, compress, decompress

with warnings.catch_warnings():
    # The library reads its message schemas by a deprecated call.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetSpec, TopicPartition
    from kafka import codec as codec_module
    from kafka.admin import AlterConfigOp, ConfigResource, MemberToRemove
    from kafka.errors import KafkaError
    from kafka.structs import OffsetAndMetadata

__all__ = [
    "AlterConfigOp",
    "ConfigResource",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaError",
    "KafkaProducer",
    "MemberToRemove",
    "OffsetAndMetadata",
    "OffsetSpec",
    "TopicPartition",
]

BATCH_SIZE_MAX: Final = 1 << 30
"""Most bytes one zstd batch may become. Reading a topic should show whatever is in it."""


class _Snappy:
    """The part of `python-snappy` that the library uses: raw blocks, which it frames itself."""

    @staticmethod
    def compress(data: bytes) -> bytes:
        return bytes(cramjam.snappy.compress_raw(data))

    @staticmethod
    def decompress(data: bytes) -> bytes:
        return bytes(cramjam.snappy.decompress_raw(data))


class _Zstd:
    """The part of `zstandard` that the library uses."""

    class ZstdCompressor:
        def compress(self, data: bytes) -> bytes:
            return compress(Codec.ZSTD, data)

    class ZstdDecompressor:
        def stream_reader(self, source: io.BytesIO, *, read_across_frames: bool) -> io.BytesIO:
            assert read_across_frames, "a batch may hold several frames"
            return io.BytesIO(decompress(Codec.ZSTD, source.read(), max_size=BATCH_SIZE_MAX))


def _lend_codecs() -> None:
    # The library asks these two names of its codec module at every use.
    if codec_module.snappy is None:
        codec_module.snappy = _Snappy
    if codec_module.zstd is None:
        codec_module.zstd = _Zstd


logging.getLogger("kafka").addHandler(logging.NullHandler())
logging.getLogger("kafka").propagate = False
_lend_codecs()
