"""Transactional producers that leave a transaction open, and others of the same id after them.

    begins ──> whole transactions ──> writes ──> dies, or sleeps, or dies with an EndTxn on its way
       ^                                              │
       ├── the next one, at once, which aborts it <───┤
       └── or when the coordinator has aborted it <───┘  `transaction.timeout.ms` later

T   What was left open is read by nobody who reads committed records, and holds them up no longer
    than its time-out and a look for such transactions, once all is well. Who was replaced writes
    and ends nothing any more. Who is not is left alone until its time is up (`transactions.py`).
"""

import asyncio
from collections.abc import Callable
from typing import Final

from tests.simulation.clients.session import BACK_OFF_S, Session
from tests.simulation.clients.transactions import (
    Outcome,
    TransactionalProducer,
    TransactionHistory,
)
from tests.simulation.world import Place, Violation

LOOK_MS: Final = 2_000
"""`transaction.abort.timed.out.transaction.cleanup.interval.ms`."""

TIMEOUTS_MS: Final = (3_000, 12_000)
OVER_S: Final = 25.0
"""So long, beside its time-out, a transaction may stay open while all is well."""

WAYS: Final = ("dies", "sleeps", "ends unheard")
WAITS: Final = 0.5
"""So many successors come when the coordinator has aborted the transaction, not before."""


class LeavingProducer:
    """See the module."""

    def __init__(
        self,
        name: str,
        open_session: Callable[[str], Session],
        history: TransactionHistory,
        places: list[Place],
        *,
        pause_s: float,
    ) -> None:
        self.name = name
        self._open_session = open_session
        self._history = history
        self._places = places
        self._pause_s = pause_s
        self._lives = 0
        self._is_gone = False
        self._lost_s = float("-inf")

    def _next(self) -> TransactionalProducer:
        """Another process of the same transactional id."""
        self._lives += 1
        session = self._open_session(f"{self.name}.{self._lives}")
        return TransactionalProducer(
            session,
            self._history,
            self._places,
            pause_s=self._pause_s,
            transactional_id=self.name,
            timeout_ms=session.world.loop.random.choice(TIMEOUTS_MS),
            lost_s=self._lost_s,
        )

    async def run(self, session: Session) -> None:
        """One after the other, until the session is over."""
        try:
            await self._follow_one_another(session)
        finally:
            self._is_gone = True

    async def _follow_one_another(self, session: Session) -> None:
        random, asleep = session.world.loop.random, None
        while not session.is_over:
            producer = self._next()
            if not await self._begin(producer, session):
                return
            if asleep is not None:
                await self._wake(asleep)
                asleep = None
            for _ in range(random.randint(0, 2) * (not session.is_over)):
                await producer.once()
            written = await producer.open() if producer.has_begun else None
            self._lost_s = producer.lost_s
            if written is None:
                continue
            how = random.choice(WAYS)
            self._history.add(
                Outcome.UNKNOWN if how == "ends unheard" else Outcome.ABORTED, written
            )
            self._history.left += 1
            if how == "ends unheard":
                producer.end_unheard(random.random() < 0.5)
            elif how == "sleeps":
                asleep = producer
            if random.random() < WAITS:
                await self._until_over(producer, session)
            else:
                await session.pause(producer.timeout_ms / 1000)
            await session.rest(self._pause_s)

    async def _begin(self, producer: TransactionalProducer, session: Session) -> bool:
        """Whether it has begun before the session was over."""
        while not session.is_over:
            if await producer.begin():
                return True
            await session.pause(BACK_OFF_S)
        return False

    async def _wake(self, producer: TransactionalProducer) -> None:
        """T: who was replaced goes on as if nothing had been."""
        place, value = next(iter(producer.offsets)), f"{self.name}-late-{self._lives}".encode()
        self._history.add(Outcome.ABORTED, {place: [value]})
        if await producer.write(place, [value], may_be_fenced=True):
            raise Violation(f"T {self.name}: {value!r} was written by one that was replaced")
        if await producer.end(True, may_be_fenced=True) is Outcome.COMMITTED:
            raise Violation(f"T {self.name} was replaced, and has committed")

    async def _until_over(self, producer: TransactionalProducer, session: Session) -> None:
        """T: wait until a transaction is over, which it must be in time."""
        world, sound_s = session.world, 0.0
        limit_s = producer.timeout_ms / 1000 + LOOK_MS / 1000 + OVER_S
        while not session.is_over and not all(map(self._is_over, producer.offsets.items())):
            await asyncio.sleep(1.0)
            sound_s = sound_s + 1.0 if world.is_sound() else 0.0
            if sound_s > limit_s:
                raise Violation(f"T {self.name} left {producer.offsets} open: they are so still")

    def _is_over(self, written: tuple[Place, int]) -> bool:
        place, offset = written
        return self._history.stable_end(place) > offset

    async def _until_begun(self, producer: TransactionalProducer) -> None:
        begun = await producer.begin()
        while not begun:
            await asyncio.sleep(BACK_OFF_S)
            begun = await producer.begin()

    async def succeed(self) -> None:
        """At the end: one more goes on, and commits what it writes everywhere."""
        while not self._is_gone:  # noqa: ASYNC110  because nothing wakes it
            await asyncio.sleep(BACK_OFF_S)
        producer = self._next()
        await self._until_begun(producer)
        written = await producer.open(everywhere=True)
        if written is None or await producer.end(True) is not Outcome.COMMITTED:
            raise Violation(f"T {self.name} does not go on though all is well: {written}")
        self._history.add(Outcome.COMMITTED, written)
