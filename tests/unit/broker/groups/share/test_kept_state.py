"""Whose share state is kept: never lost, never given away too early."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from broker.groups.share.kept_state import LONG_AGO_MS, KeptState, TopicPartitions
from tests.fakes.broker.offsets_partition import FakeController, topic_image

FOO, BAR = UUID(int=1), UUID(int=2)
IMAGE = FakeController(topic_image("foo", 1, 3), topic_image("bar", 2, 1)).image

PARTITIONS = st.frozensets(st.integers(0, 4), min_size=1)
TOPICS = st.dictionaries(
    st.sampled_from([FOO, BAR, UUID(int=3)]),
    st.builds(TopicPartitions, st.just("foo"), PARTITIONS, st.just(LONG_AGO_MS)),
)
STATES = st.builds(
    KeptState, TOPICS, TOPICS, st.dictionaries(st.sampled_from([FOO, BAR]), st.just("foo"))
)


def topic(name: str, *partitions: int, at: float = LONG_AGO_MS) -> TopicPartitions:
    return TopicPartitions(name, frozenset(partitions), at)


def test_missing_is_what_exists_and_was_not_asked_for() -> None:
    kept = KeptState({FOO: topic("foo", 1, at=50)}, {FOO: topic("foo", 0)})
    names = ["foo", "bar", "nowhere"]
    found = kept.missing(names, IMAGE, now_ms=100, retry_ms=60)
    assert found == {FOO: topic("foo", 2, at=100), BAR: topic("bar", 0, at=100)}
    # Nobody has answered for too long.
    found = kept.missing(["foo"], IMAGE, now_ms=110, retry_ms=60)
    assert found == {FOO: topic("foo", 1, 2, at=110)}


def test_a_topic_stays_deleting_until_a_deletion_succeeds() -> None:
    """Whatever is initialized meanwhile: other partitions of it may still have state."""
    kept = KeptState({FOO: topic("foo", 0, at=1)}, {}, {FOO: "foo", BAR: "bar"})
    asked = kept.asked_for({FOO: topic("foo", 1, at=9)})
    assert asked == KeptState({FOO: topic("foo", 0, 1, at=9)}, {}, {FOO: "foo", BAR: "bar"})
    assert asked.answered({FOO: [0, 1]}, {}).deleting == {FOO: "foo", BAR: "bar"}
    assert asked.deleted([FOO]).deleting == {BAR: "bar"}


def test_answers() -> None:
    kept = KeptState({FOO: topic("foo", 0, 1, 2, at=5)}, {FOO: topic("foo", 4)})
    # Nobody asked for 3 and for bar.
    assert kept.answered({FOO: [0, 3], BAR: [0]}, {FOO: [1]}) == KeptState(
        {FOO: topic("foo", 2, at=5)}, {FOO: topic("foo", 0, 4)}
    )


def test_deletion() -> None:
    kept = KeptState(
        {FOO: topic("foo", 0)}, {BAR: topic("bar", 0)}, {UUID(int=9): "gone", FOO: "foo"}
    )
    assert kept.all_deleting(IMAGE) == KeptState(deleting={FOO: "foo", BAR: "bar"})
    assert kept.topics_deleting({BAR}) == KeptState(
        kept.initializing, {}, {**kept.deleting, BAR: "bar"}
    )
    assert kept.deleted([FOO]).deleting == {UUID(int=9): "gone"}
    assert kept.without([FOO, BAR]) == KeptState({}, {}, {UUID(int=9): "gone"})


@given(STATES)
def test_the_log_says_it_all_but_for_times(kept: KeptState) -> None:
    assert KeptState.of(kept.value()) == kept


@given(STATES, STATES, STATES)
def test_answers_only_move_what_was_asked_for(
    kept: KeptState, done: KeptState, failed: KeptState
) -> None:
    good = {i: t.partitions for i, t in done.initialized.items()}
    bad = {i: t.partitions for i, t in failed.initialized.items()}
    after = kept.answered(good, bad)
    for topic_id in {*kept.initializing, *kept.initialized}:
        before = kept.initializing.get(topic_id, topic("")).partitions
        there = kept.initialized.get(topic_id, topic("")).partitions
        left = after.initializing.get(topic_id, topic("")).partitions
        now = after.initialized.get(topic_id, topic("")).partitions
        assert now == there | (before & good.get(topic_id, frozenset()))
        assert left == before - good.get(topic_id, frozenset()) - bad.get(topic_id, frozenset())
    assert after.deleting == kept.deleting
