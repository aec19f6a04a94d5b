"""What probes are answered, and what an operator reads there."""

from broker.lifecycle.health import ALERTS_SHOWN_MAX, HealthPages
from broker.network.admin_http import Query
from storage.checkpoints.log_loading import LoadProgress
from storage.environment.alerts import AlertKind, Alerts

QUERY: Query = {}


async def test_until_logs_are_open_readiness_says_how_far_recovery_is() -> None:
    progress = LoadProgress(
        partitions_total=10, partitions_done=3, bytes_total=2000, bytes_done=500
    )
    is_ready = False
    pages = HealthPages(progress, Alerts(), lambda: is_ready)
    page = await pages.readyz(QUERY)
    assert page.status == 503
    assert page.body == b"recovering 3 of 10 partitions, 500 of 2000 bytes\n"
    is_ready = True
    assert (await pages.readyz(QUERY)).body == b"ready\n"


async def test_a_broker_is_ready_without_the_metadata_store_and_says_so() -> None:
    """It serves; nobody is elected and nothing is created until the store is back."""
    away_ms = 0.0
    is_ready = True
    pages = HealthPages(LoadProgress(), Alerts(), lambda: is_ready, str, lambda: away_ms)
    assert (await pages.readyz(QUERY)).body == b"ready\n"
    away_ms = 12_400.0
    page = await pages.readyz(QUERY)
    assert (page.status, page.body) == (200, b"ready; metadata store away for 12 s\n")
    is_ready = False
    page = await pages.readyz(QUERY)
    assert page.status == 503
    assert page.body.endswith(b"bytes; metadata store away for 12 s\n")


async def test_a_metadata_store_that_refuses_the_broker_is_said_with_its_reason() -> None:
    pages = HealthPages(
        LoadProgress(),
        Alerts(),
        lambda: True,
        store_away_ms=lambda: 5_000.0,
        hindrance=lambda: "etcd a:1 refused a request: invalid user ID or password",
    )
    assert (await pages.readyz(QUERY)).body == (
        b"ready; metadata store away for 5 s: etcd a:1 refused a request: invalid user ID or "
        b"password\n"
    )


async def test_coordinators_that_wait_for_other_brokers_are_counted() -> None:
    pages = HealthPages(LoadProgress(), Alerts(), lambda: True, waiting_coordinators=lambda: 3)
    page = await pages.readyz(QUERY)
    assert (page.status, page.body) == (200, b"ready; 3 coordinators wait for other brokers\n")


async def test_a_broker_that_stops_is_alive_and_not_ready() -> None:
    pages = HealthPages(LoadProgress(), Alerts(), lambda: True)
    pages.is_stopping = True
    assert (await pages.readyz(QUERY)).status == 503
    assert (await pages.healthz(QUERY)).status == 200


async def test_alerts_are_listed_up_to_a_bound() -> None:
    """Each with what it is about; the rest is a number."""
    alerts = Alerts()
    for number in range(ALERTS_SHOWN_MAX + 2):
        alerts.set(AlertKind.LISTENER_NOT_BOUND, f"L{number}", "its address is taken")
    lines = (
        await HealthPages(LoadProgress(), alerts, lambda: True).readyz(QUERY)
    ).body.splitlines()
    assert lines[1] == b"listener-not-bound: L0: its address is taken"
    assert len(lines) == ALERTS_SHOWN_MAX + 2
    assert lines[-1] == b"and 2 more: see varve_alerts of /metrics"


async def test_a_cause_is_listed_before_what_it_leads_to() -> None:
    """However many that is: one directory may hold the state of all coordinators."""
    alerts = Alerts()
    for number in range(ALERTS_SHOWN_MAX + 50):
        alerts.set(AlertKind.COORDINATOR_UNAVAILABLE, f"__consumer_offsets-{number}", "no log")
    alerts.set(AlertKind.DIRECTORY_MISSING, "id", "it is missing")
    lines = (
        await HealthPages(LoadProgress(), alerts, lambda: True).readyz(QUERY)
    ).body.splitlines()
    assert lines[1] == b"directory-missing: id: it is missing"
    assert len(lines) == ALERTS_SHOWN_MAX + 2
    assert lines[-1] == b"and 51 more: see varve_alerts of /metrics"
