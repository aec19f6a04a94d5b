"""Elections, loads, writes and failures in any order: memory is what the log says, for all to see.

Partition 0 changes memory at the commit, partition 1 at the append.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker.coordinator.election import ElectionState as S
from broker.coordinator.shard_log import ApplyAt
from protocol.error_codes import ErrorCode as E
from tests.effort import examples
from tests.harness.coordinator import MapShard, RuntimeHarness

PARTITIONS = (0, 1)
APPLY_AT = {0: ApplyAt.COMMIT, 1: ApplyAt.APPEND}


class Runtime(RuleBasedStateMachine):
    """One runtime on two partitions."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.h = RuntimeHarness(len(PARTITIONS))
        self.keys = {
            index: [k for k in map(str, range(100)) if self.h.runtime.partition_for(k) == index][:3]
            for index in PARTITIONS
        }
        self.epochs = dict.fromkeys(PARTITIONS, 3)
        self.written = 0
        self.told: list[tuple[int, bytes | None, list[E]]] = []
        self.answers: list[list[object]] = []

    def run(self, coroutine: Coroutine[Any, Any, object]) -> None:
        self.loop.run_until_complete(coroutine)

    @initialize()
    def begin(self) -> None:
        self.run(self.h.start())

    @rule(index=st.sampled_from(PARTITIONS), step=st.sampled_from([-1, 0, 0, 1]))
    def elected(self, index: int, step: int) -> None:
        epoch = self.epochs[index] + step
        self.epochs[index] = max(self.epochs[index], epoch)

        async def elect() -> None:
            self.h.runtime.on_elected(index, epoch)

        self.run(elect())

    @rule(index=st.sampled_from(PARTITIONS))
    def elected_and_loaded(self, index: int) -> None:
        self.elected(index, 0)
        self.run(self.h.settle())

    @rule(index=st.sampled_from(PARTITIONS), step=st.sampled_from([None, 0, 0, 1]))
    def resigned(self, index: int, step: int | None) -> None:
        if step is None:
            self.h.runtime.on_resigned(index)
            return
        self.epochs[index] += step
        self.h.runtime.on_resigned(index, self.epochs[index])

    @rule(index=st.sampled_from(PARTITIONS), which=st.integers(0, 2), count=st.integers(1, 3))
    def puts(self, index: int, which: int, count: int) -> None:
        for _ in range(count):
            self.put(index, which, deletes=False)

    @rule(index=st.sampled_from(PARTITIONS), which=st.integers(0, 2), deletes=st.booleans())
    def put(self, index: int, which: int, deletes: bool) -> None:
        self.written += 1
        value = b"%d" % self.written
        key = self.keys[index][which]

        async def write() -> None:
            codes = self.h.put(key, None if deletes else value, APPLY_AT[index])
            self.told.append((index, None if deletes else value, codes))

        self.run(write())

    @rule(index=st.sampled_from(PARTITIONS), which=st.integers(0, 2))
    def put_later(self, index: int, which: int) -> None:
        """A record that follows from the last: it is in memory, and in the log some time."""
        self.written += 1
        shard = self.h.runtime.shard_at(index)
        if shard is not None:
            shard.log.append_later((b"later", b"%d" % self.written))

    @rule(index=st.sampled_from(PARTITIONS), which=st.integers(0, 2))
    def call(self, index: int, which: int) -> None:
        async def ask() -> None:
            self.answers.append(self.h.call(self.keys[index][which]))

        self.run(ask())

    @rule(ms=st.sampled_from([0, 25, 50, 5_000]))
    def time(self, ms: int) -> None:
        async def pass_time() -> None:
            self.h.timer.advance(ms)

        self.run(pass_time())

    @rule(turns=st.sampled_from([1, 2, 3, 5, 60, 60]))
    def loop_turns(self, turns: int) -> None:
        self.run(self.h.settle(turns))

    @rule(hold=st.booleans())
    def log_is_slow(self, hold: bool) -> None:
        self.h.log.hold = hold
        if not hold:
            self.run(self._commit())

    async def _commit(self) -> None:
        self.h.log.commit_held()

    @rule(time_out=st.booleans())
    def nobody_knows_of_what_is_under_way(self, time_out: bool) -> None:
        """It is in the log; told so or not."""
        code = E.REQUEST_TIMED_OUT if time_out else E.NOT_LEADER_OR_FOLLOWER

        async def fail() -> None:
            self.h.log.fail_held(code, lost=not time_out)

        self.run(fail())

    @rule(code=st.sampled_from([E.NOT_ENOUGH_REPLICAS, E.MESSAGE_TOO_LARGE, E.KAFKA_STORAGE_ERROR]))
    def next_append_fails(self, code: E) -> None:
        self.h.log.fail_next.append(code)

    @rule(unknown=st.booleans())
    def outcomes_are_unknown(self, unknown: bool) -> None:
        self.h.log.time_out = unknown

    @rule(index=st.sampled_from(PARTITIONS), fails=st.booleans())
    def reads_fail(self, index: int, fails: bool) -> None:
        self.h.log.fail_reads.pop(index, None)
        if fails:
            self.h.log.fail_reads[index] = OSError("disk")

    @rule(fails=st.booleans())
    def shards_cannot_serve(self, fails: bool) -> None:
        self.h.fail_on.clear()
        if fails:
            self.h.fail_on["loaded"] = RuntimeError("bug")

    def _replayed(self, index: int, end_offset: int) -> dict[bytes, bytes]:
        values: dict[bytes, bytes] = {}
        for record in self.h.log.records(index):
            assert record.key is not None
            if record.offset >= end_offset or record.key == b"later":
                continue
            if record.value is None:
                values.pop(record.key, None)
            else:
                values[record.key] = record.value
        return values

    def _memory(self, shard: MapShard) -> dict[bytes, bytes]:
        return {key: value for key, value in shard.values.items() if key != b"later"}

    @invariant()
    def memory_is_what_the_log_says(self) -> None:
        log = self.h.log
        for index in PARTITIONS:
            shard = self.h.runtime.shard_at(index)
            if shard is not None:
                assert not shard.log.is_closed
                end = log.committed[index] if index == 0 else log.ends[index]
                assert self._memory(shard) == self._replayed(index, end)

    @invariant()
    def one_shard_serves_where_the_election_is_active(self) -> None:
        for index in PARTITIONS:
            shard = self.h.runtime.shard_at(index)
            assert (shard is not None) == (self.h.state(index) is S.ACTIVE)
            serving = [
                one
                for one in self.h.built
                if one.topic_partition.partition == index and not one.log.is_closed
            ]
            assert shard is None or shard in serving
            # One more is being loaded, at most: the loader does one partition at a time.
            assert len(serving) - (shard is not None) <= 1

    @invariant()
    def answered_once_and_never_too_early(self) -> None:
        committed = {
            (index, record.value)
            for index in PARTITIONS
            for record in self.h.log.records(index)
            if record.offset < self.h.log.committed[index]
        }
        for index, value, codes in self.told:
            assert len(codes) <= 1, (index, value)
            assert value is None or codes != [E.NONE] or (index, value) in committed
        assert all(len(answers) <= 1 for answers in self.answers)

    def teardown(self) -> None:
        h = self.h
        h.log.hold = h.log.time_out = False
        h.log.fail_next.clear()
        h.log.fail_reads.clear()
        h.log.failures.clear()
        h.fail_on.clear()
        self.run(self._commit())
        h.log.commit_all()
        for index in PARTITIONS:
            self.epochs[index] += 1
            self.elected(index, 0)
        for _ in range(5):
            self.run(h.pass_time(100))
        assert [h.state(index) for index in PARTITIONS] == [S.ACTIVE, S.ACTIVE]
        assert not h.runtime.is_loading
        self.memory_is_what_the_log_says()
        assert all(len(codes) == 1 for _, _, codes in self.told)
        assert all(len(answers) == 1 for answers in self.answers)
        self.run(h.runtime.stop())
        assert all(shard.calls[-1] == "unloaded" for shard in h.built)
        self.loop.close()


Runtime.TestCase.settings = examples(100, steps=40)
TestRuntime = Runtime.TestCase
