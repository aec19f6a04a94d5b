"""The container's entry point starts the broker with the settings it should have."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from config.load import load

ENTRYPOINT = Path(__file__).resolve().parents[3] / "docker" / "entrypoint"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Has a `varve` that writes down how it was called, and room for mounted settings."""
    program = tmp_path / "varve"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys\n"
        "print(json.dumps([sys.argv[1:], dict(os.environ)]))\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    (tmp_path / "mounted").mkdir()
    return tmp_path


def _start(folder: Path, *words: str, **environment: str) -> tuple[list[str], dict[str, str]]:
    variables = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "VARVE_CONFIG_DIR": str(folder / "mounted"),
        **environment,
    }
    ended = subprocess.run(
        [str(ENTRYPOINT), *words], check=True, capture_output=True, text=True, env=variables
    )
    called, seen = json.loads(ended.stdout)
    return called, {k: v for k, v in seen.items() if k.startswith(("KAFKA_", "CLUSTER_"))}


def test_it_is_executable() -> None:
    """Git keeps the bit, and so does COPY."""
    assert ENTRYPOINT.stat().st_mode & stat.S_IXUSR


def test_no_configuration_is_a_node_for_clients_on_the_host(folder: Path) -> None:
    """It listens everywhere inside and calls itself localhost."""
    called, seen = _start(folder)
    assert called == ["serve"]
    broker = load(environment=seen).broker
    assert [str(one) for one in broker.listeners] == ["PLAINTEXT://0.0.0.0:9092"]
    assert [str(one) for one in broker.listeners_for_clients] == ["PLAINTEXT://localhost:9092"]
    assert str(broker.admin_listener) == "0.0.0.0:9644"
    assert broker.remote_log_storage_system_enable


def test_remote_storage_may_be_switched_off(folder: Path) -> None:
    """By the variable that has the setting's name."""
    _, seen = _start(folder, KAFKA_REMOTE_LOG_STORAGE_SYSTEM_ENABLE="false")
    assert not load(environment=seen).broker.remote_log_storage_system_enable


def test_listeners_of_the_user_are_left_alone(folder: Path) -> None:
    """With them, the advertised ones are the user's business too."""
    _, seen = _start(folder, KAFKA_LISTENERS="PLAINTEXT://:19092")
    assert seen["KAFKA_LISTENERS"] == "PLAINTEXT://:19092"
    assert "KAFKA_ADVERTISED_LISTENERS" not in seen


def test_only_the_advertised_address_may_be_set(folder: Path) -> None:
    """The common case: the host has a name."""
    _, seen = _start(folder, KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://kafka.example:9092")
    broker = load(environment=seen).broker
    assert [str(one) for one in broker.listeners_for_clients] == ["PLAINTEXT://kafka.example:9092"]


def test_the_admin_port_may_be_moved_or_switched_off(folder: Path) -> None:
    """An empty text is off."""
    assert _start(folder, KAFKA_ADMIN_LISTENER=":1")[1]["KAFKA_ADMIN_LISTENER"] == ":1"
    assert _start(folder, KAFKA_ADMIN_LISTENER="")[1]["KAFKA_ADMIN_LISTENER"] == ""


@pytest.mark.parametrize("name", ["server.properties", "server.yaml", "server.yml"])
def test_a_mounted_file_is_read_and_nothing_is_added(folder: Path, name: str) -> None:
    """The environment would be stronger than the file, so there must be none of ours."""
    path = folder / "mounted" / name
    path.touch()
    called, seen = _start(folder, "--set", "a=b c", KAFKA_NODE_ID="3")
    assert called == ["serve", "--config", str(path), "--set", "a=b c"]
    assert seen == {"KAFKA_NODE_ID": "3"}


def test_options_go_to_the_broker(folder: Path) -> None:
    """As in `docker run IMAGE --set num.partitions=3`."""
    called, seen = _start(folder, "--set", "num.partitions=3")
    assert called == ["serve", "--set", "num.partitions=3"]
    assert seen["KAFKA_LISTENERS"] == "PLAINTEXT://0.0.0.0:9092"


def test_another_command_is_run_instead(folder: Path) -> None:
    """As in `docker run IMAGE varve topics list`."""
    called, seen = _start(folder, "varve", "topics", "list")
    assert called == ["topics", "list"]
    assert seen == {}
