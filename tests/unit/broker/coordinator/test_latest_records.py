"""The newest value of each key, with transactions that are open, committed, aborted."""

from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.latest_records import LatestRecords


def test_the_newest_value_counts_and_a_tombstone_forgets() -> None:
    records = LatestRecords()
    records.replay(b"a", b"1", 0, -1)
    records.replay(b"b", b"1", 1, -1)
    records.replay(b"a", b"2", 2, -1)
    records.replay(b"b", None, 3, -1)
    assert records.latest == {b"a": (b"2", 2)}


def test_transactional_values_wait_for_their_marker() -> None:
    records = LatestRecords(transactional_below=b"x")
    for producer_id, key in ((1, b"a"), (2, b"b"), (3, b"c"), (1, b"x")):
        records.replay(key, b"v", producer_id, producer_id)
    assert records.latest == {b"x": (b"v", 1)}, "this one waits for nobody"
    records.replay_marker(1, commit=True)
    records.replay_marker(2, commit=False)
    assert records.latest == {b"a": (b"v", 1), b"x": (b"v", 1)}
    assert records.pending == {3: {b"c": (b"v", 3)}}


def test_a_tombstone_forgets_what_waits() -> None:
    records = LatestRecords(transactional_below=b"x")
    records.replay(b"a", b"v", 0, 1)
    records.replay(b"a", None, 1, -1)
    records.replay_marker(1, commit=True)
    assert records.latest == {}


KEYS = st.sampled_from([b"a", b"b"])
STEPS = st.lists(
    st.one_of(
        st.tuples(KEYS, st.sampled_from([b"1", b"2", None]), st.sampled_from([-1, 1, 2])),
        st.tuples(st.just(b"marker"), st.booleans(), st.sampled_from([1, 2])),
    ),
    max_size=20,
)


@given(STEPS)
def test_as_if_each_record_were_taken_in_by_its_offset(
    steps: list[tuple[bytes, object, int]],
) -> None:
    """The order of the records decides, not that of the markers."""
    records = LatestRecords(transactional_below=b"x")
    written: list[tuple[int, bytes, object, int]] = []
    for offset, (key, value, producer_id) in enumerate(steps):
        if key == b"marker":
            records.replay_marker(producer_id, commit=bool(value))
            written = [
                (at, k, v, -1 if owner == producer_id and value else owner)
                for at, k, v, owner in written
                if owner != producer_id or value
            ]
        else:
            assert value is None or isinstance(value, bytes)
            records.replay(key, value, offset, producer_id)
            if value is None:
                written = [one for one in written if one[1] != key]
            else:
                # A later value of one transaction replaces its own.
                written = [
                    one for one in written if one[1] != key or one[3] != producer_id or one[3] == -1
                ]
                written.append((offset, key, value, producer_id))
    expected = {k: (v, at) for at, k, v, owner in sorted(written, key=lambda o: o[0]) if owner < 0}
    assert records.latest == expected
