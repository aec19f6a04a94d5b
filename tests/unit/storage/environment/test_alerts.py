"""What is wrong is said once, in words, until it is mended."""

import logging
import re
from pathlib import Path

import pytest

from storage.environment.alerts import Alert, AlertKind, Alerts

OFFLINE = AlertKind.DIRECTORY_OFFLINE

PAGE = Path(__file__).resolve().parents[4] / "docs" / "operations.md"


def test_the_documentation_has_every_kind_once() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(encoding="utf-8"), re.M)
    assert rows == sorted(kind.value for kind in AlertKind)


def test_an_alert_stands_until_it_is_cleared() -> None:
    alerts = Alerts()
    alerts.set(OFFLINE, "/b", "no space")
    alerts.set(OFFLINE, "/a", "gone")
    assert alerts.all() == [Alert(OFFLINE, "/a", "gone"), Alert(OFFLINE, "/b", "no space")]
    assert alerts.counts()[OFFLINE] == 2
    alerts.clear(OFFLINE, "/a")
    assert alerts.all() == [Alert(OFFLINE, "/b", "no space")]
    alerts.clear(OFFLINE, "/b")
    assert alerts.all() == []
    assert alerts.counts()[OFFLINE] == 0


def test_the_log_says_it_once_and_again_in_other_words(caplog: pytest.LogCaptureFixture) -> None:
    alerts = Alerts()
    with caplog.at_level(logging.INFO):
        for text in ("gone", "gone", "gone for good"):
            alerts.set(OFFLINE, "/a", text)
        alerts.clear(OFFLINE, "/a")
        alerts.clear(OFFLINE, "/a")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", 'alert kind=directory-offline subject=/a text="gone"'),
        ("ERROR", 'alert kind=directory-offline subject=/a text="gone for good"'),
        ("INFO", "alert cleared kind=directory-offline subject=/a"),
    ]


def test_one_that_finds_no_room_is_in_the_log_only(caplog: pytest.LogCaptureFixture) -> None:
    alerts = Alerts(alerts_max=1)
    alerts.set(OFFLINE, "/a", "gone")
    alerts.set(OFFLINE, "/b", "gone too")
    alerts.set(OFFLINE, "/a", "still gone")
    assert alerts.all() == [Alert(OFFLINE, "/a", "still gone")]
    assert alerts.refused == 1
    assert 'subject=/b text="gone too"' in caplog.text
