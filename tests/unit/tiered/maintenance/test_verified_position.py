"""What is kept of a round is read back, or passed over."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiered.maintenance.verified_position import Position, Verified, decode, encode

HERE = Position("t", 3, UUID(int=1), 77, UUID(int=2))
positions = st.builds(
    Position,
    st.text(),
    st.integers(0, 2**31 - 1),
    st.uuids(),
    st.integers(0, 2**63 - 1),
    st.uuids(),
)


@given(st.integers(0), st.none() | positions, st.lists(positions, max_size=5))
def test_what_was_kept_is_read_back(
    rounds: int, position: Position | None, faulty: list[Position]
) -> None:
    verified = Verified(rounds, position, faulty)
    assert decode(encode(verified, "c"), "c") == verified


def test_another_clusters_is_passed_over() -> None:
    assert decode(encode(Verified(3, HERE), "theirs"), "ours") == Verified()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"\xff",
        b"{}",
        b'{"version": 2, "clusterId": "c", "rounds": 1, "position": null, "faulty": []}',
        b'{"version": 1, "clusterId": "c", "rounds": "x", "position": null, "faulty": []}',
        b'{"version": 1, "clusterId": "c", "rounds": 1, "position": [1], "faulty": []}',
        b'{"version": 1, "clusterId": "c", "rounds": 1, "position": ["t", 0, "z", 1, "z"]}',
        b'{"version": 1, "clusterId": "c", "rounds": 1, "position": [1, 0, "", 1, ""]}',
        b'{"version": 1, "clusterId": "c", "rounds": 1, "position": null, "faulty": null}',
        b"[" * 100_000,
    ],
)
def test_what_makes_no_sense_is_passed_over(data: bytes) -> None:
    assert decode(data, "c") == Verified()


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    assert decode(data, "c") == Verified()
