"""The compose file's settings are good ones, and its node is closed to the outside."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from config.load import load

ROOT = Path(__file__).resolve().parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load(
    (ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8")
)
VARVE: dict[str, Any] = COMPOSE["services"]["varve"]


def test_the_settings_are_accepted_without_a_warning() -> None:
    """They are read as `varve serve` reads them."""
    loaded = load(environment=VARVE["environment"])
    assert loaded.warnings == ()
    assert {listener.name for listener in loaded.broker.listeners} == {"HOST", "INTERNAL"}


def test_the_image_is_built_from_our_dockerfile() -> None:
    """Paths are relative to the compose file."""
    context = ROOT / "docker" / VARVE["build"]["context"]
    assert (context / VARVE["build"]["dockerfile"]).samefile(ROOT / "docker" / "Dockerfile")


@pytest.mark.parametrize("port", VARVE["ports"])
def test_ports_are_open_to_this_machine_only(port: str) -> None:
    """There is no authentication yet."""
    assert port.startswith("127.0.0.1:")


def test_every_listener_that_is_advertised_to_the_host_is_published() -> None:
    """localhost:9092 is what clients are told, so it has to be there."""
    published = {port.rsplit(":", 1)[0] for port in VARVE["ports"]}
    loaded = load(environment=VARVE["environment"])
    host = next(one for one in loaded.broker.listeners_for_clients if one.name == "HOST")
    assert f"127.0.0.1:{host.port}" in published


def test_data_survives_the_container() -> None:
    """In a named volume, where the image keeps it."""
    name, _, target = VARVE["volumes"][0].partition(":")
    assert name in COMPOSE["volumes"]
    assert f"VOLUME {target}\n" in (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")


def test_the_container_can_do_no_more_than_it_needs() -> None:
    """No capabilities, no new ones, nothing writable but data and /tmp."""
    assert VARVE["cap_drop"] == ["ALL"]
    assert VARVE["security_opt"] == ["no-new-privileges:true"]
    assert VARVE["read_only"] is True
    assert VARVE["tmpfs"] == ["/tmp"]


def test_waiting_for_it_is_waiting_until_it_is_ready() -> None:
    """Compose does not restart unhealthy containers."""
    assert VARVE["healthcheck"]["test"] == ["CMD", "healthcheck", "/readyz"]


def test_there_is_time_for_a_clean_stop() -> None:
    """Ten seconds, the default, may be too short for many dirty logs."""
    assert VARVE["stop_grace_period"] == "60s"
