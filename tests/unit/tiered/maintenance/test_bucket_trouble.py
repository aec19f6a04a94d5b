"""When an operator hears of a bucket that does not work."""

import pytest

from storage.environment.alerts import AlertKind, Alerts
from tests.fakes.clock import ManualClock
from tiered.errors import StoreDeniedError, StoreUnavailableError
from tiered.maintenance.bucket_trouble import FORGOTTEN_MS, LASTING_MS, BucketTrouble, Work

REFUSED = StoreUnavailableError("connection refused")


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.alerts = Alerts()
        self.trouble = BucketTrouble(self.clock, self.alerts)

    @property
    def subjects(self) -> list[str]:
        assert all(one.kind is AlertKind.TIER_FAILING for one in self.alerts.all())
        return [one.subject for one in self.alerts.all()]


def test_what_fails_for_a_moment_is_no_alert() -> None:
    world = World()
    for _ in range(5):
        world.trouble.failed(Work.READS, REFUSED)
        world.clock.advance(LASTING_MS - 1)
        world.trouble.failed(Work.READS, REFUSED)
        assert world.subjects == []
        world.trouble.worked(Work.READS)


@pytest.mark.parametrize("work", list(Work))
def test_what_lasts_is_one_alert_until_it_works(work: Work) -> None:
    world = World()
    world.trouble.failed(work, REFUSED)
    world.clock.advance(LASTING_MS)
    world.trouble.failed(work, REFUSED)
    assert world.subjects == [work]
    (alert,) = world.alerts.all()
    assert "for more than a minute (connection refused): " in alert.text
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


def test_copies_that_nobody_wants_any_more_are_forgotten() -> None:
    """The topic is deleted, say: no copy will work, for none is tried."""
    world = World()
    for _ in range(2):
        world.trouble.failed(Work.COPIES, REFUSED)
        world.clock.advance(LASTING_MS)
    world.clock.advance(FORGOTTEN_MS - LASTING_MS - 1)
    world.trouble.worked(Work.READS)
    assert world.subjects == [Work.COPIES]
    world.clock.advance(1)
    world.trouble.worked(Work.READS)
    assert world.subjects == []
