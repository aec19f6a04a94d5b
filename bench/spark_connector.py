"""Spark's own Kafka connector, unmodified: resolved by Maven once, then kept in `.build`.

It is an outside reference: tests compare its rows with ours, measurements its costs. Nothing here
knows where Maven fetches from, and no jar is part of this repository.
"""

import fcntl
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

SPARK_VERSION = "4.2.0"
SCALA_VERSION = "2.13"
KAFKA_CLIENTS_VERSION = "3.9.2"
COMMONS_POOL_VERSION = "2.12.0"

TOKEN_PROVIDER_VERSIONS = (SPARK_VERSION, "4.0.0")
"""Some mirrors lack the newer one; the connector works with either."""

# What they name in turn is in Spark already, or one of the other version named above.
_ALONE = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
)

_BUILD = Path(__file__).resolve().parent.parent / ".build" / "spark-connector" / SPARK_VERSION


class SparkConnectorError(RuntimeError):
    """The connector cannot be had here; the text says what to install or what Maven said."""


def connector_jars() -> Sequence[Path]:
    """The connector and what it needs beside Spark, fetched on first use.

    Raises:
        SparkConnectorError: Maven is missing, or cannot resolve it.
    """
    _BUILD.mkdir(parents=True, exist_ok=True)
    with (_BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (_BUILD / "complete").exists():
            _fetch()
            (_BUILD / "complete").touch()
    return sorted((_BUILD / "jars").glob("*.jar"))


def _fetch() -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise SparkConnectorError("`mvn` was not found: install Maven (Debian: maven)")
    for version in TOKEN_PROVIDER_VERSIONS:
        pom = _BUILD / "pom.xml"
        pom.write_text(_pom(version), encoding="utf-8")
        shutil.rmtree(_BUILD / "jars", ignore_errors=True)
        command = [maven, "-B", "-q", "-f", str(pom), "dependency:copy-dependencies"]
        command += ["-DexcludeTransitive=true", f"-DoutputDirectory={_BUILD / 'jars'}"]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if result.returncode == 0:
            return
    tail = "\n".join((result.stdout + result.stderr).splitlines()[-20:])
    raise SparkConnectorError(f"Maven could not resolve Spark's Kafka connector:\n{tail}")


def _pom(token_provider_version: str) -> str:
    spark = "org.apache.spark"
    artifacts = (
        (spark, f"spark-sql-kafka-0-10_{SCALA_VERSION}", SPARK_VERSION),
        (spark, f"spark-token-provider-kafka-0-10_{SCALA_VERSION}", token_provider_version),
        ("org.apache.kafka", "kafka-clients", KAFKA_CLIENTS_VERSION),
        ("org.apache.commons", "commons-pool2", COMMONS_POOL_VERSION),
    )
    dependencies = "".join(
        f"    <dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
        f"<version>{version}</version>{_ALONE}</dependency>\n"
        for group, name, version in artifacts
    )
    return (
        "<project>\n  <modelVersion>4.0.0</modelVersion>\n  <groupId>varve.build</groupId>\n"
        "  <artifactId>spark-connector</artifactId>\n  <version>1</version>\n"
        f"  <packaging>pom</packaging>\n  <dependencies>\n{dependencies}  </dependencies>\n"
        "</project>\n"
    )
