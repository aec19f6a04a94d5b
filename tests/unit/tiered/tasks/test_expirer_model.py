"""Any order of writing, copying, expiring, failing, dying and leading again keeps the promises.

After each step (see `World.check`): every offset from the log start on can be had, from the disk or
from a whole remote segment; there is no gap up to the highest remote offset; and in the end, after
expiry and a garbage collection, the bucket holds exactly what the metadata says.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.unit.tiered.tasks.task_world import World, tiered_config
from tiered.errors import StoreTimeoutError, StoreUnavailableError

CALLS = (
    "copy_segment",
    "log uploaded",
    "manifest uploaded",
    "delete_segment",
    "manifest removed",
    "objects removed",
    "is_complete",
)


async def cancel_all() -> None:
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


class TierLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.world: World | None = None

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self.loop.run_until_complete(work)

    def on_loop(self, work: Callable[[], object]) -> None:
        async def call() -> None:
            work()

        self.run(call())

    @property
    def w(self) -> World:
        assert self.world is not None
        return self.world

    @initialize()
    def begin(self) -> None:
        async def begin() -> None:
            self.world = World(tiered_config())
            await self.world.start()

        self.run(begin())

    @rule(segments=st.integers(1, 4))
    def write(self, segments: int) -> None:
        self.w.write(segments)

    @rule(intervals=st.integers(1, 3))
    def time_passes(self, intervals: int) -> None:
        self.run(self.w.interval(intervals))

    @rule()
    def local_retention(self) -> None:
        self.w.expire_local()

    @rule(by=st.integers(1, 3))
    def delete_records(self, by: int) -> None:
        log = self.w.log
        log.delete_records(min(log.log_start_offset + by, log.high_watermark))

    @rule(kept=st.sampled_from([-1, 0, 300, 700]))
    def retention_bytes(self, kept: int) -> None:
        self.on_loop(lambda: self.w.set_config(retention_bytes=kept))

    @rule(paused=st.booleans())
    def pause(self, paused: bool) -> None:
        self.w.paused = paused
        self.on_loop(lambda: self.w.update(tier_copy_paused=False))

    @rule(disabled=st.booleans())
    def disable_copying(self, disabled: bool) -> None:
        # What local retention takes without a copy goes for good: then all of it must be local.
        if not disabled or self.w.log.local_log_start_offset == self.w.log.log_start_offset:
            kept = -1 if disabled else 0
            self.on_loop(
                lambda: self.w.set_config(
                    remote_log_copy_disable=disabled, local_retention_bytes=kept
                )
            )

    @rule(call=st.sampled_from(CALLS), times=st.integers(1, 3))
    def store_fails(self, call: str, times: int) -> None:
        self.w.tier.fail(call, StoreUnavailableError(call), times=times)

    @rule(call=st.sampled_from(CALLS[:4]))
    def store_hangs(self, call: str) -> None:
        self.w.tier.hang(call)

    @rule(
        call=st.sampled_from(["add", "update"]),
        written=st.booleans(),
        late=st.booleans(),
        times=st.integers(1, 2),
    )
    def metadata_fails(self, call: str, written: bool, late: bool, times: int) -> None:
        self.w.metadata.fail(
            call, StoreTimeoutError(call), written=written, late=written and late, times=times
        )

    @rule()
    def metadata_catches_up(self) -> None:
        self.w.metadata.catch_up()

    @rule(step_ms=st.sampled_from([0, 1, 40, 700]))
    def crash(self, step_ms: int) -> None:
        async def crash() -> None:
            await self.w.run(step_ms, 1)
            await self.w.crash()
            await self.w.start()

        self.run(crash())

    @rule(epochs=st.integers(1, 2))
    def lead_again(self, epochs: int) -> None:
        self.w.leader_epoch += epochs
        self.on_loop(self.w.lead)
        self.run(self.w.run(0))

    @rule()
    def follow_for_a_while(self) -> None:
        self.on_loop(lambda: self.w.manager.on_follower(self.w.tiered()))
        self.run(self.w.run(200))
        self.on_loop(self.w.lead)

    @invariant()
    def promises_hold(self) -> None:
        if self.world is not None:
            self.w.check()

    def teardown(self) -> None:
        try:
            if self.world is not None:
                self.run(self.end())
        finally:
            self.run(cancel_all())
            self.loop.close()

    async def end(self) -> None:
        world = self.w
        world.paused = False
        await world.crash()
        await world.start()
        world.set_config(remote_log_copy_disable=False)
        # One segment per step: enough steps for all that a life can have written.
        await world.run(60_000, 400)
        await world.collect_garbage()
        assert world.orphans() == []
        assert world.missing() == []
        assert {state.name for _, _, state in world.states()} <= {"COPY_SEGMENT_FINISHED"}
        assert world.log.highest_remote_offset == world.log.log_end_offset - 1
        world.check()
        await world.manager.stop()


TestTierLife = TierLife.TestCase
TestTierLife.settings = settings(
    max_examples=30,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
