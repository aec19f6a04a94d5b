"""Kafka's released tests that start a cluster (`@ClusterTest`), with brokers of Varve in it.

Their jars are on Maven beside Kafka's own. `java_suite` has one class of the name of Kafka's that
starts brokers within the test; it stands before that one on the class path. Each class of tests is
one Java.
"""

import os
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, STDOUT, run
from typing import Final

from bench.kafka_release import KAFKA_VERSION, SCALA_VERSION, KafkaRelease
from tests.fakes.kafka.maven_jars import BUILD, Artifact, compiled, maven_jars

SOURCES: Final = Path(__file__).parents[1] / "java_suite"
ROOT: Final = Path(__file__).parents[3]
FORKS: Final = "tests.interop.suite.broker_forks"
TIMEOUT_S: Final = 1800
NOT_HERE: Final = "NOT_HERE"
"""What only a broker within the test's Java could have answered; see the Java class."""

_KAFKA: Final = "org.apache.kafka"
_JARS: Final[tuple[Artifact, ...]] = (
    *(
        (_KAFKA, f"kafka-test-common-{name}", KAFKA_VERSION)
        for name in ("runtime", "internal-api", "util")
    ),
    *(
        (_KAFKA, name, KAFKA_VERSION, "test")
        for name in (
            "kafka-clients",
            "kafka-server-common",
            "kafka-metadata",
            "kafka-server",
            "kafka-storage",
            "kafka-storage-api",
            "kafka-tools",
            f"kafka_{SCALA_VERSION}",
        )
    ),
    (_KAFKA, "kafka-streams", KAFKA_VERSION),
    ("org.junit.platform", "junit-platform-console-standalone", "1.13.4"),
    ("org.mockito", "mockito-core", "5.20.0"),
    ("net.bytebuddy", "byte-buddy", "1.17.7"),
    ("net.bytebuddy", "byte-buddy-agent", "1.17.7"),
    ("org.objenesis", "objenesis", "3.3"),
    ("org.hamcrest", "hamcrest", "3.0"),
    ("org.bouncycastle", "bcpkix-jdk18on", "1.80"),
)


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """What became of the tests of one class, by method.

    Attributes:
        passed: Those of which at least one run passed and none failed.
        failed: Method to the first line of why.
        left_out: Those of which no run could be made, and why.
    """

    passed: frozenset[str]
    failed: dict[str, str]
    left_out: dict[str, str]


def run_class(name: str, etcd: str, directory: Path) -> SuiteResult:
    """Run a class of Kafka's tests; logs of processes and JUnit's report stay in `directory`."""
    release = KafkaRelease.resolve()
    jars = f"{maven_jars('kafka-suite', _JARS)}/*{os.pathsep}{release.classpath}"
    classes = compiled(sorted(SOURCES.rglob("*.java")), jars, BUILD / "kafka-suite" / "classes")
    for folder in ("clusters", "temporary"):
        (directory / folder).mkdir(parents=True)
    command = [
        # Compiled quickly rather than well: each Java lives for a minute.
        *(release.java, "-Xmx1g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        *(f"-Dvarve.forks={sys.executable} -m {FORKS}", f"-Detcd={etcd}"),
        *(f"-Dvarve.directory={directory / 'clusters'}",),
        *(f"-Dlog4j2.configurationFile={release.directory / 'log4j2-warn.properties'}",),
        # Some tests put logs beside where they run, most into the system's folder.
        f"-Djava.io.tmpdir={directory / 'temporary'}",
        *("-Djunit.jupiter.execution.timeout.default=300s", "-cp", f"{classes}{os.pathsep}{jars}"),
        *("org.junit.platform.console.ConsoleLauncher", "execute", f"--select-class={name}"),
        *("--details=none", f"--reports-dir={directory}"),
    ]
    modules = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = run(
        command,
        cwd=directory / "temporary",
        env={**os.environ, "PYTHONPATH": modules},
        stdout=PIPE,
        stderr=STDOUT,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    report = directory / "TEST-junit-jupiter.xml"
    assert report.exists(), "\n".join(done.stdout.splitlines()[-40:])
    return _read(report)


def _read(report: Path) -> SuiteResult:
    passed: set[str] = set()
    failed: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        method = case.get("name", "").split("(")[0]
        problem = next(
            (found for tag in ("failure", "error") if (found := case.find(tag)) is not None), None
        )
        skipped = case.find("skipped")
        text = "" if problem is None else (problem.text or problem.get("message") or "?")
        if problem is not None and NOT_HERE not in text:
            failed.setdefault(method, text.strip().splitlines()[0][:400])
        elif problem is not None or skipped is not None:
            text = text or (skipped is not None and skipped.text) or ""
            at = text.find(NOT_HERE)
            left_out.setdefault(method, text[at:].splitlines()[0] if at >= 0 else text[:200])
        else:
            passed.add(method)
    return SuiteResult(
        frozenset(passed - failed.keys()),
        failed,
        {method: why for method, why in left_out.items() if method not in passed | failed.keys()},
    )
