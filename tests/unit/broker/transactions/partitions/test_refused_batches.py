"""What is answered to batches that come behind one that was refused for now."""

from broker.transactions.partitions.refused_batches import (
    BEHIND_MAX,
    PRODUCERS_MAX,
    WATCHED_MS,
    RefusedBatches,
    Sender,
    SentBatch,
    sent_batch,
)
from protocol.error_codes import ErrorCode
from protocol.records.batch import SEQUENCE_COUNT
from tests.unit.broker.world import batch

GAP = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
SENDER = Sender("t", 0, 7, 1)
NOW_MS = 5_000.0
FIRST = SentBatch(SENDER, 3)
NEXT = SentBatch(SENDER, 5)


def test_a_gap_is_answered_as_the_batch_before_was() -> None:
    """As many times as there may be batches on their way; then it is one."""
    refused = RefusedBatches()
    assert refused.code_for(NEXT, GAP, NOW_MS) is GAP
    for code in (NOT_LEADER, ErrorCode.NOT_ENOUGH_REPLICAS):
        assert refused.code_for(FIRST, code, NOW_MS) is code
        assert [refused.code_for(NEXT, GAP, NOW_MS) for _ in range(BEHIND_MAX)] == [
            code
        ] * BEHIND_MAX
        assert refused.code_for(NEXT, GAP, NOW_MS) is GAP
        assert len(refused) == 0


def test_who_is_refused_for_good_has_a_gap() -> None:
    refused = RefusedBatches()
    assert (
        refused.code_for(FIRST, ErrorCode.MESSAGE_TOO_LARGE, NOW_MS) is ErrorCode.MESSAGE_TOO_LARGE
    )
    assert refused.code_for(NEXT, GAP, NOW_MS) is GAP


def test_the_refused_batch_itself_has_a_gap() -> None:
    """Nothing before it was refused: what is missing is not on its way."""
    refused = RefusedBatches()
    for again in (FIRST, FIRST._replace(base_sequence=2)):
        refused.code_for(FIRST, NOT_LEADER, NOW_MS)
        assert refused.code_for(again, GAP, NOW_MS) is GAP


def test_after_the_highest_sequence_comes_the_first() -> None:
    refused = RefusedBatches()
    refused.code_for(FIRST._replace(base_sequence=SEQUENCE_COUNT - 1), NOT_LEADER, NOW_MS)
    assert refused.code_for(FIRST._replace(base_sequence=1), GAP, NOW_MS) is NOT_LEADER


def test_what_is_behind_is_asked_for_a_while() -> None:
    """And not of the refused batch, which comes again."""
    refused = RefusedBatches()
    assert not refused.is_watched(NOW_MS)
    assert not refused.is_behind(NEXT)
    refused.code_for(FIRST, NOT_LEADER, NOW_MS)
    assert refused.is_watched(NOW_MS + WATCHED_MS - 1)
    assert refused.is_behind(NEXT)
    assert not refused.is_behind(FIRST)
    assert not refused.is_behind(SentBatch(SENDER._replace(producer_id=8), 5))
    for _ in range(BEHIND_MAX):
        refused.code_for(NEXT, GAP, NOW_MS)
    assert not refused.is_behind(NEXT)
    assert not refused.is_watched(NOW_MS + WATCHED_MS)
    assert refused.watched_until_ms == 0


def test_a_topic_may_not_have_been_known() -> None:
    """It is created again, say: the batch behind has the new topic's id, which has a name here."""
    refused = RefusedBatches()
    nameless = FIRST._replace(sender=SENDER._replace(topic=""))
    code = ErrorCode.UNKNOWN_TOPIC_ID
    assert refused.code_for(nameless, code, NOW_MS) is code
    assert refused.is_behind(NEXT)
    assert refused.code_for(NEXT, GAP, NOW_MS) is code
    assert not refused.is_behind(SentBatch(SENDER._replace(partition=1), 5))


def test_others_have_theirs() -> None:
    """Another partition, producer or epoch."""
    refused = RefusedBatches()
    refused.code_for(FIRST, NOT_LEADER, NOW_MS)
    for other in (
        SENDER._replace(topic="u"),
        SENDER._replace(partition=1),
        SENDER._replace(producer_id=8),
        SENDER._replace(producer_epoch=2),
    ):
        assert refused.code_for(SentBatch(other, 5), GAP, NOW_MS) is GAP


def test_as_many_are_remembered_as_may_be() -> None:
    refused = RefusedBatches()

    def code(producer_id: int, base_sequence: int, of: ErrorCode) -> ErrorCode:
        sender = SENDER._replace(producer_id=producer_id)
        return refused.code_for(SentBatch(sender, base_sequence), of, NOW_MS)

    for producer_id in range(PRODUCERS_MAX + 1):
        code(producer_id, 3, NOT_LEADER)
    assert len(refused) == PRODUCERS_MAX
    assert code(0, 5, GAP) is GAP
    assert code(1, 5, GAP) is NOT_LEADER


def test_who_has_sent_a_batch() -> None:
    known = batch(b"a", producer_id=7, producer_epoch=1, base_sequence=3)
    assert sent_batch("t", 0, memoryview(known)) == FIRST
    assert sent_batch("t", 0, memoryview(batch(b"a"))) is None
    assert sent_batch("t", 0, memoryview(known)[:60]) is None
    assert sent_batch("t", 0, None) is None
