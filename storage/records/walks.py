"""Rules about records, on whole batches: what is at fault in one, and one in another codec.

Python's functions in `protocol.records` are the rule. Where `native/record_rules.c` is compiled it
is asked first, and answers for batches that are well; they are decoded in Python only where it does
not. Results and errors are the same either way.
"""

from functools import cache
from typing import Final

from protocol.records.batch import BatchHeader, checked_header
from protocol.records.builder import reassemble, rebuild_batch
from protocol.records.record import check_records, iterate_records, records_block
from storage.records.compiled_walks import CompiledWalks, Times, load_compiled

_INT64_MAX: Final = 2**63 - 1
_INT64_MIN: Final = -(2**63)


@cache
def compiled_walks() -> CompiledWalks | None:
    """The compiled walks of this process, None where Python walks. Loaded when first needed."""
    return load_compiled()[0]


def record_errors(
    batch: memoryview,
    *,
    max_size: int,
    require_key: bool,
    timestamp_min: int | None,
    timestamp_max: int | None,
) -> list[tuple[int, str]]:
    """(index, what is wrong) of records at fault, by rising index: see `check_records`.

    Raises:
        DecodeError: The batch as a whole is damaged.
    """
    header = checked_header(batch)
    count = header.records_count
    earliest = _INT64_MIN if timestamp_min is None else timestamp_min
    latest = _INT64_MAX if timestamp_max is None else timestamp_max
    compiled = compiled_walks()
    # Producers may not set LogAppendTime, whose records' own times are not looked at.
    if (
        compiled is not None
        and count == header.last_offset_delta + 1
        and not header.is_log_append_time
        and earliest <= _INT64_MAX
        and latest >= _INT64_MIN
    ):
        block = records_block(batch, header, max_size=max_size)
        if compiled.check_block(
            block,
            count,
            header.base_timestamp,
            max(earliest, _INT64_MIN),
            min(latest, _INT64_MAX),
            require_key,
        ):
            return []
    return check_records(
        batch,
        max_size=max_size,
        require_key=require_key,
        timestamp_min=timestamp_min,
        timestamp_max=timestamp_max,
    ).errors


def recompress(
    header: BatchHeader, batch: memoryview, *, codec: int, level: int | None, max_size: int
) -> bytearray:
    """The batch with the same records in another codec: see `rebuild_batch`.

    Args:
        header: Of the batch.
        batch: All of it.
        codec: A `compression.Codec`.
        level: Compression level, None for the codec's default.
        max_size: Most bytes the records may decompress to.

    Raises:
        DecodeError: The structure is damaged.
    """
    if compiled_walks() is not None:
        block = records_block(batch, header, max_size=max_size)
        done = cut_records(header, block, None, codec=codec, level=level)
        if done is not None:
            return done
    return rebuild_batch(
        header, list(iterate_records(batch, max_size=max_size)), codec=codec, level=level
    )


def cut_records(
    header: BatchHeader,
    block: bytes,
    kept: int | None,
    *,
    codec: int | None = None,
    level: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray | None:
    """What `rebuild_batch` makes of some records of a batch, byte for byte, or None: Python is to.

    Args:
        header: Header of the batch as it was.
        block: Its records, decompressed.
        kept: A bit for each record that stays, the first one's is 1; None: all.
        codec: A `compression.Codec`; None: as it was.
        level: Compression level, None for the codec's default.
        delete_horizon_ms: From when tombstones may go. None: as it was.
    """
    compiled = compiled_walks()
    if compiled is None:
        return None
    count = header.records_count
    horizon = header.delete_horizon_ms if delete_horizon_ms is None else delete_horizon_ms
    append_time = header.max_timestamp if header.is_log_append_time else None
    cut = compiled.cut_block(
        block,
        count,
        None if kept is None else kept.to_bytes((count + 7) // 8, "little"),
        Times(header.base_timestamp, append_time, horizon),
    )
    if cut is None:
        return None
    return reassemble(
        header,
        cut.block,
        count if kept is None else kept.bit_count(),
        codec=header.codec if codec is None else codec,
        has_horizon=horizon is not None,
        base_timestamp=cut.base_timestamp,
        max_timestamp=cut.max_timestamp,
        level=level,
    )


__all__ = ["compiled_walks", "cut_records", "recompress", "record_errors"]
