"""The five bytes before a value."""

import pyarrow as pa

from pipeline.lake.values.wire import unframe


def test_headers_are_taken_off() -> None:
    """Ids up to the largest; values that are too short, or begin with something else, are told."""
    values = [
        b"\0\0\0\0\1",
        b"\0\xff\xff\xff\xffbody",
        b"\1\0\0\0\1x",
        b"\0\0\0\0",
        b"",
        b"\0\0\0\1\0\0",
    ]
    framed = unframe(pa.array([b"?", *values], pa.binary()).slice(1))
    assert framed.positions.tolist() == [0, 1, 5]
    assert framed.schema_ids.tolist() == [1, 2**32 - 1, 256]
    assert framed.bodies.to_pylist() == [b"", b"body", b"\0"]
    assert [misfit.position for misfit in framed.misfits] == [2, 3, 4]


def test_no_values_are_none() -> None:
    """An empty batch."""
    assert unframe(pa.array([], pa.binary())).positions.tolist() == []
