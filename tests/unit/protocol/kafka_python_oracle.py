"""kafka-python's record code, as a second opinion. Only ever fed valid bytes."""

import warnings

with warnings.catch_warnings():
    # Importing the package reads its resources in a way that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.codec import gzip_decode, lz4_decode
    from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
    from kafka.record.util import decode_varint, encode_varint

__all__ = [
    "DefaultRecordBatch",
    "DefaultRecordBatchBuilder",
    "decode_varint",
    "encode_varint",
    "gzip_decode",
    "lz4_decode",
]
