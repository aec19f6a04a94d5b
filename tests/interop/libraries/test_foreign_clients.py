"""Clients in other languages, and of other releases: what people have besides those of Kafka 4.2.

    make test-clients

builds them first (`.ci/clients`); their programs are in `go`, `node` and `java_other` beside this
module. Each prints a line for every step and ends with status 1 at the first that goes wrong.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.node import OwnedNode
from tests.interop.conftest import BROKERS

pytestmark = pytest.mark.clients

HERE = Path(__file__).parents[1]
REPOSITORY = HERE.parents[1]
BUILT = REPOSITORY / ".build" / "clients"
TIMEOUT_S = 300

GO = {
    "franz": "github.com/twmb/franz-go",
    "sarama": "github.com/IBM/sarama",
    "kafkago": "github.com/segmentio/kafka-go",
}
NODE = {"kafkajs": "kafkajs", "platformatic": "@platformatic/kafka"}
JAVA = re.findall(r'other_java="(.*)"', (REPOSITORY / ".ci" / "clients").read_text())[0].split()


def run(command: list[str | Path], broker: OwnedNode) -> None:
    """Fail with all that the program said."""
    result = subprocess.run(
        [*command, broker.address],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
        env={**os.environ, "VARVE_INTEROP_REPLICAS": str(min(3, BROKERS))},
    )
    said = result.stdout[-20_000:]
    assert result.returncode == 0, f"{said}\n{broker.log_tail()}"
    assert said.count("\nok ") >= 3, said
    assert "FAILED" not in said, said


def built(path: Path) -> Path:
    """A program of ours; fails when it is not there."""
    if not path.exists():
        pytest.fail(f"{path.relative_to(REPOSITORY)} is not there: run .ci/clients")
    return path


@pytest.mark.parametrize("name", GO)
def test_go(name: str, coordinators: OwnedNode, ran: Callable[[str], None]) -> None:
    module = GO[name]
    found = re.search(rf"{re.escape(module)} (v\S+)", (HERE / "go" / "go.mod").read_text())
    assert found is not None
    ran(f"{module} {found[1]}")
    run([built(BUILT / "go" / name)], coordinators)


@pytest.mark.parametrize("name", NODE)
def test_node(name: str, coordinators: OwnedNode, ran: Callable[[str], None]) -> None:
    lock = json.loads((HERE / "node" / "package-lock.json").read_text())
    ran(f"{NODE[name]} {lock['packages'][f'node_modules/{NODE[name]}']['version']}")
    run(["node", built(BUILT / "node" / f"{name}.mjs")], coordinators)


@pytest.mark.parametrize("version", JAVA)
def test_java(version: str, coordinators: OwnedNode, ran: Callable[[str], None]) -> None:
    ran(f"Java client {version}")
    build = built(BUILT / "java" / version / "classes")
    classpath = f"{build}{os.pathsep}{build.parent / 'libs'}/*"
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    run(["java", "-Xmx256m", quiet, "-cp", classpath, "Other"], coordinators)
