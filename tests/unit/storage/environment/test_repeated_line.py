"""Lines about what lasts."""

from storage.environment.repeated_line import AGAIN_MS, RepeatedLine
from tests.fakes.clock import ManualClock


def test_at_once_and_again_after_the_interval() -> None:
    """From line to line, however often it is asked meanwhile."""
    clock = ManualClock()
    line = RepeatedLine(clock)
    assert [line.is_due() for _ in range(3)] == [True, False, False]
    clock.advance(AGAIN_MS - 1)
    assert not line.is_due()
    clock.advance(1)
    assert [line.is_due() for _ in range(2)] == [True, False]
    clock.advance(5 * AGAIN_MS)
    assert [line.is_due() for _ in range(2)] == [True, False]


def test_another_interval() -> None:
    clock = ManualClock()
    line = RepeatedLine(clock, 60_000.0)
    assert line.is_due()
    clock.advance(AGAIN_MS)
    assert not line.is_due()
    clock.advance(50_000)
    assert line.is_due()
