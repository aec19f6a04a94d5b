"""The cluster of the compose file: its settings are good ones, and any one of it may be lost."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.load import LoadedConfig, load

ROOT = Path(__file__).resolve().parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load(
    (ROOT / "docker" / "compose-cluster.yaml").read_text(encoding="utf-8")
)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
BROKERS = {name: one for name, one in SERVICES.items() if name.startswith("varve-")}
MEMBERS = {name: one for name, one in SERVICES.items() if name.startswith("etcd-")}


def loaded(broker: dict[str, Any]) -> LoadedConfig:
    """The settings, as `varve serve` reads them."""
    return load(environment=broker["environment"])


def test_it_is_three_and_three() -> None:
    assert (len(BROKERS), len(MEMBERS), len(SERVICES)) == (3, 3, 6)


@pytest.mark.parametrize("name", BROKERS)
def test_the_settings_are_accepted_without_a_warning(name: str) -> None:
    assert loaded(BROKERS[name]).warnings == ()


def test_every_broker_is_another_node_of_one_cluster() -> None:
    settings = [loaded(broker).broker for broker in BROKERS.values()]
    assert sorted(one.node_id for one in settings) == [1, 2, 3]
    assert len({str(one.metadata_store) for one in settings}) == 1
    assert all(one.metadata_store.is_shared for one in settings)


def test_the_store_is_all_members() -> None:
    """One that is down is passed over."""
    text = next(iter(BROKERS.values()))["environment"]["KAFKA_METADATA_STORE"]
    addresses = text.removeprefix("etcd://").split(",")
    told = [one["environment"]["ETCD_ADVERTISE_CLIENT_URLS"] for one in MEMBERS.values()]
    assert [f"http://{address}" for address in addresses] == told


def test_members_name_each_other() -> None:
    peers = {
        one["environment"]["ETCD_NAME"]: one["environment"]["ETCD_INITIAL_ADVERTISE_PEER_URLS"]
        for one in MEMBERS.values()
    }
    assert list(peers) == list(MEMBERS)
    wanted = ",".join(f"{name}={url}" for name, url in peers.items())
    assert {one["environment"]["ETCD_INITIAL_CLUSTER"] for one in MEMBERS.values()} == {wanted}


def test_etcd_is_the_release_that_tests_run() -> None:
    """By its version: `latest` may be any."""
    found = re.search(r"^version=(v[0-9.]+)$", (ROOT / ".ci" / "etcd").read_text(), re.MULTILINE)
    assert found is not None
    assert {one["image"].rpartition(":")[2] for one in MEMBERS.values()} == {found[1]}


def test_records_survive_the_loss_of_any_one() -> None:
    """Three replicas and two in sync, of the internal topics, too."""
    for broker in BROKERS.values():
        settings = loaded(broker).broker
        assert settings.default_replication_factor == 3
        assert settings.min_insync_replicas == 2
        assert settings.offsets_topic_replication_factor == 3
        assert settings.transaction_state_log_replication_factor == 3
        assert settings.transaction_state_log_min_isr == 2
        assert settings.share_coordinator_state_topic_replication_factor == 3
        assert settings.share_coordinator_state_topic_min_isr == 2


def test_nobody_keeps_data_of_another() -> None:
    volumes = [one["volumes"][0].partition(":") for one in SERVICES.values()]
    assert sorted([*(name for name, _, _ in volumes), "objects"]) == sorted(COMPOSE["volumes"])
    for name, one in MEMBERS.items():
        assert one["volumes"] == [f"{name}:{one['environment']['ETCD_DATA_DIR']}"]
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    for _, _, target in (one["volumes"][0].partition(":") for one in BROKERS.values()):
        assert f"VOLUME {target}\n" in dockerfile


def test_the_object_store_is_one_for_all() -> None:
    """A user's that writes there: the image makes the folder, and a new volume takes its owner."""
    roots = {loaded(one).broker.rsm_config_storage_root for one in BROKERS.values()}
    assert all(
        one["volumes"][1:] == [f"objects:{root}"] for one in BROKERS.values() for root in roots
    )
    (root,) = roots
    assert root is not None
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(rf"chown varve:varve .*{root}", dockerfile)


@pytest.mark.parametrize("name", BROKERS)
def test_what_is_advertised_is_there(name: str) -> None:
    """Clients of this machine by a published port, brokers by the service's name."""
    broker = BROKERS[name]
    advertised = dict(
        part.split("://") for part in broker["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
    )
    port = advertised["HOST"].partition(":")[2]
    assert advertised["HOST"].startswith("localhost:")
    assert f"127.0.0.1:{port}:{port}" in broker["ports"]
    assert advertised["INTERNAL"] == f"{name}:19092"
    listeners = {one.name: one.port for one in loaded(broker).broker.listeners}
    assert listeners == {"HOST": int(port), "INTERNAL": 19092}


def test_ports_are_open_to_this_machine_only() -> None:
    """And differ; etcd's are not open at all."""
    ports = [port for broker in BROKERS.values() for port in broker["ports"]]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert len({port.split(":")[1] for port in ports}) == len(ports)
    assert not any("ports" in member for member in MEMBERS.values())


@pytest.mark.parametrize("name", SERVICES)
def test_what_dies_is_started_again_and_asked_how_it_is(name: str) -> None:
    one = SERVICES[name]
    assert one["restart"] == "unless-stopped"
    assert one["healthcheck"]["test"][0] == "CMD"
    assert one["cap_drop"] == ["ALL"]
    assert one["read_only"] is True


@pytest.mark.parametrize("name", BROKERS)
def test_a_broker_has_time_to_hand_over(name: str) -> None:
    assert BROKERS[name]["stop_grace_period"] == "60s"
    assert BROKERS[name]["healthcheck"]["test"] == ["CMD", "healthcheck", "/readyz"]
    assert set(BROKERS[name]["depends_on"]) == set(MEMBERS)
