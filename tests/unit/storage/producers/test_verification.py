"""No transaction opens in a partition without its coordinator's word, however late that comes."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from storage.errors import (
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    ProducerError,
)
from storage.producers.state import ABORT_MARKER, ProducerStateManager
from storage.producers.verification import VERIFICATIONS_MAX, TransactionTerms, VerificationGuard
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition
from tests.effort import examples
from tests.fakes.filesystem import FakeFilesystem

PID = 7
HOUR_MS = 3_600_000


@pytest.fixture
def state() -> ProducerStateManager:
    return new_state()


def new_state() -> ProducerStateManager:
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    return ProducerStateManager(
        TopicPartition("t", 0), "/d", filesystem, requires_verification=True
    )


def begin(
    state: ProducerStateManager,
    sequence: int = 0,
    *,
    epoch: int = 0,
    pid: int = PID,
    bumps: bool = True,
    now_ms: int = 0,
) -> VerificationGuard | None:
    return state.begin_verification(pid, epoch, sequence, now_ms, supports_epoch_bump=bumps)


def append(
    state: ProducerStateManager,
    sequence: int = 0,
    guard: VerificationGuard | None = None,
    *,
    epoch: int = 0,
    origin: AppendOrigin = AppendOrigin.CLIENT,
) -> None:
    terms = None if guard is None else TransactionTerms(guard)
    assert state.check(PID, epoch, sequence, sequence, True, False, origin, -1, terms) is None
    end = state.map_end_offset
    state.append(PID, epoch, sequence, sequence, end, end, 0, True)


def abort(state: ProducerStateManager, epoch: int = 0, version: int = 0) -> None:
    terms = TransactionTerms(version=version)
    state.check(PID, epoch, -1, -1, True, True, AppendOrigin.COORDINATOR, 0, terms)
    completed = state.append_control(PID, epoch, ABORT_MARKER, 0, state.map_end_offset, 0)
    if completed is not None:
        state.complete_transaction(completed)


@pytest.mark.parametrize("origin", [AppendOrigin.CLIENT, AppendOrigin.COORDINATOR])
def test_a_transaction_does_not_open_unverified(
    state: ProducerStateManager, origin: AppendOrigin
) -> None:
    """Neither by a producer's batch nor by offsets."""
    with pytest.raises(InvalidTransactionStateError, match="no verified transaction"):
        append(state, origin=origin)
    guard = begin(state)
    append(state, guard=guard, origin=origin)
    append(state, 1, origin=origin)


def test_nothing_is_asked_while_it_is_open(state: ProducerStateManager) -> None:
    """But for the next epoch, and after the end."""
    append(state, guard=begin(state))
    assert begin(state, 1) is None
    assert begin(state, 0, epoch=1) is not None
    abort(state)
    assert begin(state, 1) is not None


def test_replication_is_not_asked(state: ProducerStateManager) -> None:
    """The leader has."""
    append(state, origin=AppendOrigin.REPLICATION)


def test_an_abort_overtakes(state: ProducerStateManager) -> None:
    """The answer was good when it was given; the transaction is over."""
    guard = begin(state)
    abort(state)
    with pytest.raises(InvalidTransactionStateError):
        append(state, guard=guard)


def test_the_answer_of_an_earlier_transaction(state: ProducerStateManager) -> None:
    """A, abort, B: A's verification must not let B's batch in (ABA)."""
    first = begin(state)
    abort(state)
    second = begin(state)
    assert first is not second
    with pytest.raises(InvalidTransactionStateError):
        append(state, guard=first)
    append(state, guard=second)


def test_batches_that_wait_share_the_guard(state: ProducerStateManager) -> None:
    """They come in one after the other."""
    guard = begin(state, 0)
    assert begin(state, 1) is guard
    append(state, 0, guard)
    append(state, 1, guard)


def test_a_batch_does_not_pass_one_that_is_verified(state: ProducerStateManager) -> None:
    """The lower sequence could never be appended afterwards."""
    guard = begin(state, 0, bumps=False)
    begin(state, 1, bumps=False)
    with pytest.raises(OutOfOrderSequenceError):
        append(state, 1, guard)
    begin(state, 0, epoch=1, bumps=False)
    append(state, 0, guard, epoch=1)


def test_the_lowest_sequence_counts(state: ProducerStateManager) -> None:
    """Also when it comes last."""
    guard = begin(state, 5, bumps=False)
    begin(state, 3, bumps=False)
    with pytest.raises(OutOfOrderSequenceError):
        append(state, 5, guard)
    append(state, 3, guard)


def test_a_transaction_of_version_2_begins_with_sequence_0(state: ProducerStateManager) -> None:
    """Its epoch is its own; of older clients the log may have forgotten the beginning."""
    guard = begin(state, 3)
    with pytest.raises(OutOfOrderSequenceError, match="instead of 0"):
        append(state, 3, guard)
    abort(state, 1, 2)
    guard = begin(state, 3, epoch=1)
    with pytest.raises(OutOfOrderSequenceError, match="instead of 0"):
        append(state, 3, guard, epoch=1)
    older = new_state()
    append(older, 3, begin(older, 3, bumps=False))


def test_an_old_epoch_is_told_so(state: ProducerStateManager) -> None:
    """Before anybody is asked, and after."""
    guard = begin(state)
    abort(state, 1, 2)
    with pytest.raises(InvalidProducerEpochError):
        begin(state)
    with pytest.raises(InvalidProducerEpochError):
        append(state, guard=guard)


def test_a_sequence_of_what_is_there(state: ProducerStateManager) -> None:
    """It is neither a new transaction nor a retry: its producer awaits no answer any more."""
    append(state, guard=begin(state))
    abort(state)
    with pytest.raises(OutOfOrderSequenceError):
        state.check(PID, 0, 0, 0, True)


def test_what_comes_to_nothing_is_forgotten(state: ProducerStateManager) -> None:
    """With the producers that are silent; a newer one stays."""
    old = begin(state)
    assert state.remove_expired(23 * HOUR_MS) == 0
    assert begin(state, now_ms=23 * HOUR_MS) is old
    state.remove_expired(24 * HOUR_MS)
    assert begin(state) is not old


def test_strangers_cannot_fill_the_memory(state: ProducerStateManager) -> None:
    """The oldest has to begin anew."""
    first = begin(state, pid=0)
    for pid in range(1, VERIFICATIONS_MAX + 1):
        begin(state, pid=pid)
    assert begin(state, pid=VERIFICATIONS_MAX) is begin(state, pid=VERIFICATIONS_MAX)
    assert begin(state, pid=0) is not first


def test_switched_off(state: ProducerStateManager) -> None:
    """`transaction.partition.verification.enable=false`."""
    state.requires_verification = False
    append(state)


class Coordinator(RuleBasedStateMachine):
    """One producer, its coordinator, and a network that delays everything.

    The model is the coordinator: which epoch is open, and whether it knows of the partition. A
    transaction may be open in the log only while the coordinator knows: it will write the marker.
    With version 2 partitions are added by batches and epochs grow; before, neither.
    """

    @initialize(bumps=st.booleans())
    def start(self, bumps: bool) -> None:
        self.state = new_state()
        self.bumps = bumps
        self.epoch = 0
        self.knows = False
        # Markers that are decided and not yet written, by epoch.
        self.markers: list[int] = []
        # Batches whose answer is on its way: (epoch, sequence, guard).
        self.verified: list[tuple[int, int, VerificationGuard]] = []

    @precondition(lambda self: not self.bumps and not self.markers)
    @rule()
    def add_partition(self) -> None:
        """AddPartitionsToTxn of an older client."""
        self.knows = True

    @rule(sequence=st.sampled_from([0, 0, 1, 2]), is_late=st.booleans())
    def arrive(self, sequence: int, is_late: bool) -> None:
        """A batch, perhaps of the last epoch. The coordinator answers, but the answer is slow."""
        epoch = max(0, self.epoch - is_late)
        try:
            guard = begin(self.state, sequence, epoch=epoch, bumps=self.bumps)
        except InvalidProducerEpochError:
            return
        if guard is None:
            self._try_append(epoch, sequence, None)
        elif epoch == self.epoch and not self.markers and (self.bumps or self.knows):
            self.knows = True
            self.verified.append((epoch, sequence, guard))

    @precondition(lambda self: self.verified)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        self._try_append(*self.verified.pop(data.draw(st.integers(0, len(self.verified) - 1))))

    def _try_append(self, epoch: int, sequence: int, guard: VerificationGuard | None) -> None:
        terms = None if guard is None else TransactionTerms(guard)
        try:
            found = self.state.check(PID, epoch, sequence, sequence, True, terms=terms)
        except ProducerError:
            return
        if found is None:
            end = self.state.map_end_offset
            self.state.append(PID, epoch, sequence, sequence, end, end, 0, True)

    @precondition(lambda self: self.knows and not self.markers)
    @rule()
    def end(self) -> None:
        """The outcome is decided; the next transaction has the next epoch."""
        self.epoch += self.bumps
        self.markers.append(self.epoch)

    @precondition(lambda self: self.markers)
    @rule()
    def write_marker(self) -> None:
        abort(self.state, self.markers.pop(), 2 if self.bumps else 0)
        self.knows = False

    @invariant()
    def no_transaction_hangs(self) -> None:
        entry = self.state.last_entry(PID) if hasattr(self, "state") else None
        if entry is not None and entry.txn_first_offset >= 0:
            assert self.knows
            assert entry.epoch == self.epoch - (len(self.markers) if self.bumps else 0)


TestCoordinator = Coordinator.TestCase
TestCoordinator.settings = examples(200, steps=40)
