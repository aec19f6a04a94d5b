"""When an operator hears of a bucket that does not work."""

import pytest

from storage.environment.alerts import AlertKind, Alerts
from tests.fakes.clock import ManualClock
from tiered.errors import StoreDeniedError, StoreUnavailableError
from tiered.maintenance.bucket_trouble import (
    FORGOTTEN_MS,
    GARBAGE_LASTING_MS,
    LASTING_MS,
    BucketTrouble,
    Work,
)

REFUSED = StoreUnavailableError("connection refused")


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.alerts = Alerts()
        self.trouble = BucketTrouble(self.clock, self.alerts)

    @property
    def subjects(self) -> list[str]:
        for one in self.alerts.all():
            is_garbage = one.subject == Work.REMOVALS
            kind = AlertKind.TIER_GARBAGE_STAYS if is_garbage else AlertKind.TIER_FAILING
            assert one.kind is kind
        return [one.subject for one in self.alerts.all()]


def test_what_fails_for_a_moment_is_no_alert() -> None:
    world = World()
    for _ in range(5):
        world.trouble.failed(Work.READS, REFUSED)
        world.clock.advance(LASTING_MS - 1)
        world.trouble.failed(Work.READS, REFUSED)
        assert world.subjects == []
        world.trouble.worked(Work.READS)


@pytest.mark.parametrize(
    ("work", "lasting_ms", "text"),
    [
        (Work.READS, LASTING_MS, "a minute"),
        (Work.COPIES, LASTING_MS, "a minute"),
        (Work.REMOVALS, GARBAGE_LASTING_MS, "10 minutes"),
    ],
)
def test_what_lasts_is_one_alert_until_it_works(work: Work, lasting_ms: float, text: str) -> None:
    world = World()
    world.trouble.failed(work, REFUSED)
    world.clock.advance(lasting_ms - 1)
    world.trouble.failed(work, REFUSED)
    assert world.subjects == []
    world.clock.advance(1)
    world.trouble.failed(work, REFUSED)
    assert world.subjects == [work]
    (alert,) = world.alerts.all()
    assert f"for more than {text} (connection refused): " in alert.text
    world.clock.advance(1000)
    world.trouble.failed(work, StoreDeniedError("another text each time"))
    assert world.alerts.all() == [alert], "no other line in the log"
    world.trouble.worked(work)
    assert world.subjects == []
    world.trouble.failed(work, REFUSED)
    assert world.subjects == [], "it begins anew"


def test_a_bucket_that_can_be_read_may_take_nothing() -> None:
    world = World()
    for _ in range(2):
        world.trouble.failed(Work.COPIES, StoreDeniedError("403"))
        world.trouble.worked(Work.READS)
        world.clock.advance(LASTING_MS)
    assert world.subjects == [Work.COPIES]


@pytest.mark.parametrize("work", [Work.COPIES, Work.REMOVALS])
def test_what_nobody_wants_any_more_is_forgotten(work: Work) -> None:
    """The topic is deleted, say: no copy will work, for none is tried; or another broker leads."""
    world = World()
    world.trouble.failed(work, REFUSED)
    world.clock.advance(GARBAGE_LASTING_MS)
    world.trouble.failed(work, REFUSED)
    world.clock.advance(FORGOTTEN_MS - 1)
    world.trouble.worked(Work.READS)
    assert world.subjects == [work]
    world.clock.advance(1)
    world.trouble.worked(Work.READS)
    assert world.subjects == []
