"""A clock that stands still until it is moved; the machine's, where the time of day is wrong."""

from storage.environment.clock import SystemClock


class ManualClock:
    """Wall and monotonic time that only `advance` moves.

    Attributes:
        per_look_ms: Time that passes with each look at the monotonic clock, as while one works.
    """

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = float(now_ms)
        self._monotonic_ms = 0.0
        self.per_look_ms = 0.0

    def now_ms(self) -> int:
        return int(self._now_ms)

    def monotonic_ms(self) -> float:
        self._monotonic_ms += self.per_look_ms
        return self._monotonic_ms

    def monotonic_s(self) -> float:
        return self._monotonic_ms / 1000

    def advance(self, ms: float) -> None:
        """Move both clocks forward."""
        self._now_ms += ms
        self._monotonic_ms += ms

    def set_now_ms(self, now_ms: int) -> None:
        """Jump the wall clock alone, as an administrator would."""
        self._now_ms = float(now_ms)


class WrongClock(SystemClock):
    """The machine's, but for the time of day, which an administrator or a bad NTP server has set.

    Attributes:
        ahead_ms: How far it is ahead; negative: behind. May be set while brokers run.
    """

    def __init__(self, ahead_ms: int = 0) -> None:
        super().__init__()
        self.ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms
