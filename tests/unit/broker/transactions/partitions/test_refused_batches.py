"""What is answered to batches that come behind one that was refused for now."""

from broker.transactions.partitions.refused_batches import (
    BEHIND_MAX,
    PRODUCERS_MAX,
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
FIRST = SentBatch(SENDER, 3)
NEXT = SentBatch(SENDER, 5)


def test_a_gap_is_answered_as_the_batch_before_was() -> None:
    """As many times as there may be batches on their way; then it is one."""
    refused = RefusedBatches()
    assert refused.code_for(NEXT, GAP) is GAP
    for code in (NOT_LEADER, ErrorCode.NOT_ENOUGH_REPLICAS):
        assert refused.code_for(FIRST, code) is code
        assert [refused.code_for(NEXT, GAP) for _ in range(BEHIND_MAX)] == [code] * BEHIND_MAX
        assert refused.code_for(NEXT, GAP) is GAP
        assert len(refused) == 0


def test_who_is_refused_for_good_has_a_gap() -> None:
    refused = RefusedBatches()
    assert refused.code_for(FIRST, ErrorCode.MESSAGE_TOO_LARGE) is ErrorCode.MESSAGE_TOO_LARGE
    assert refused.code_for(NEXT, GAP) is GAP


def test_the_refused_batch_itself_has_a_gap() -> None:
    """Nothing before it was refused: what is missing is not on its way."""
    refused = RefusedBatches()
    for again in (FIRST, FIRST._replace(base_sequence=2)):
        refused.code_for(FIRST, NOT_LEADER)
        assert refused.code_for(again, GAP) is GAP


def test_after_the_highest_sequence_comes_the_first() -> None:
    refused = RefusedBatches()
    refused.code_for(FIRST._replace(base_sequence=SEQUENCE_COUNT - 1), NOT_LEADER)
    assert refused.code_for(FIRST._replace(base_sequence=1), GAP) is NOT_LEADER


def test_others_have_theirs() -> None:
    """Another partition, producer or epoch."""
    refused = RefusedBatches()
    refused.code_for(FIRST, NOT_LEADER)
    for other in (
        SENDER._replace(topic="u"),
        SENDER._replace(partition=1),
        SENDER._replace(producer_id=8),
        SENDER._replace(producer_epoch=2),
    ):
        assert refused.code_for(SentBatch(other, 5), GAP) is GAP


def test_as_many_are_remembered_as_may_be() -> None:
    refused = RefusedBatches()

    def code(producer_id: int, base_sequence: int, of: ErrorCode) -> ErrorCode:
        sender = SENDER._replace(producer_id=producer_id)
        return refused.code_for(SentBatch(sender, base_sequence), of)

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
