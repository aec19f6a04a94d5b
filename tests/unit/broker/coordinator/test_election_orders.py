"""Elections and resignations in any order of epochs: an older one never serves, never are two.

Kafka's images give them in order; what comes late, twice or out of order must do no harm either.
"""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.election import ElectionState as S
from protocol.records.builder import build_batch
from tests.effort import examples
from tests.fakes.broker.coordinator_log import TOPIC
from tests.fakes.broker.offsets_partition import topic_image
from tests.harness.coordinator import RuntimeHarness

EPOCHS = st.integers(0, 5)

NEWS = st.lists(
    st.one_of(
        st.tuples(st.just("elected"), EPOCHS),
        st.tuples(st.just("resigned"), EPOCHS),
        st.tuples(st.just("gone"), st.none()),
        st.tuples(st.just("turns"), st.sampled_from([1, 2, 3, 60])),
        st.tuples(st.just("committed"), st.none()),
        st.tuples(st.just("made anew"), st.none()),
    ),
    max_size=40,
)


@examples(200)
@given(NEWS)
def test_never_two_and_never_an_older_one(news: list[tuple[str, int | None]]) -> None:
    asyncio.run(_play(news))


async def _play(news: list[tuple[str, int | None]]) -> None:
    h = await RuntimeHarness().start(elect=False)
    h.log.put_batch(0, build_batch([(b"a", b"1", (), 0)]))
    newest = -1
    # Epoch of the election that counts; None: this broker does not lead.
    leads: int | None = None
    topic_id = 99
    for what, number in news:
        if what == "turns":
            assert number is not None
            await h.settle(number)
        elif what == "committed":
            h.log.commit_all()
        elif what == "made anew":
            topic_id += 1
            await h.controller.set_topics(topic_image(TOPIC, topic_id, 1))
            newest, leads = -1, None
        elif what == "gone":
            h.runtime.on_resigned(0)
            leads = None
        elif what == "elected":
            assert number is not None
            h.runtime.on_elected(0, number)
            if number >= newest:
                newest = leads = number
        else:
            assert number is not None
            h.runtime.on_resigned(0, number)
            if number >= newest:
                newest, leads = number, None
        election = h.runtime._elections.get(0)
        assert (None if election is None else election.leader_epoch) == leads, (what, number)
        open_shards = [shard for shard in h.built if not shard.log.is_closed]
        serving = h.runtime.shard_at(0)
        assert len(open_shards) - (serving is not None) <= 1, "one more is being loaded, at most"
        if serving is not None:
            assert not serving.log.is_closed
            assert serving.leader_epoch == leads
    h.log.commit_all()
    await h.settle(200)
    if leads is not None:
        assert h.state() is S.ACTIVE
        assert [s.leader_epoch for s in h.built if not s.log.is_closed] == [leads]
    else:
        assert all(shard.log.is_closed for shard in h.built)
    await h.runtime.stop()
