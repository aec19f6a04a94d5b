"""Iceberg's own REST catalog: released jars by Maven, fetched once, in a process of its own."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.kafka.maven_jars import compiled, maven_jars

ICEBERG = "1.10.1"
JETTY = "11.0.26"
JACKSON = "2.19.2"

# Group, name, version, and the classifier of jars that have Iceberg's tests' parts.
ARTIFACTS = (
    ("org.apache.iceberg", "iceberg-api", ICEBERG),
    ("org.apache.iceberg", "iceberg-api", ICEBERG, "tests"),
    ("org.apache.iceberg", "iceberg-core", ICEBERG),
    ("org.apache.iceberg", "iceberg-core", ICEBERG, "tests"),
    ("org.apache.iceberg", "iceberg-common", ICEBERG),
    ("org.apache.iceberg", "iceberg-bundled-guava", ICEBERG),
    ("org.apache.iceberg", "iceberg-aws", ICEBERG),
    ("org.apache.iceberg", "iceberg-aws-bundle", ICEBERG),
    ("org.apache.avro", "avro", "1.12.0"),
    ("com.fasterxml.jackson.core", "jackson-annotations", JACKSON),
    ("com.fasterxml.jackson.core", "jackson-core", JACKSON),
    ("com.fasterxml.jackson.core", "jackson-databind", JACKSON),
    ("com.github.ben-manes.caffeine", "caffeine", "2.9.3"),
    ("org.apache.httpcomponents.client5", "httpclient5", "5.5"),
    ("org.apache.httpcomponents.core5", "httpcore5", "5.3.4"),
    ("org.apache.httpcomponents.core5", "httpcore5-h2", "5.3.4"),
    ("org.eclipse.jetty", "jetty-http", JETTY),
    ("org.eclipse.jetty", "jetty-io", JETTY),
    ("org.eclipse.jetty", "jetty-security", JETTY),
    ("org.eclipse.jetty", "jetty-server", JETTY),
    ("org.eclipse.jetty", "jetty-servlet", JETTY),
    ("org.eclipse.jetty", "jetty-util", JETTY),
    ("org.eclipse.jetty.toolchain", "jetty-jakarta-servlet-api", "5.0.2"),
    ("org.roaringbitmap", "RoaringBitmap", "1.3.0"),
    ("org.slf4j", "slf4j-api", "2.0.17"),
    ("org.slf4j", "slf4j-simple", "2.0.17"),
    ("org.xerial", "sqlite-jdbc", "3.50.3.0"),
    ("io.airlift", "aircompressor", "0.27"),
    ("dev.failsafe", "failsafe", "3.3.2"),
)

SOURCE = Path(__file__).parent / "java_catalog" / "RestCatalog.java"


def _built() -> str:
    """The class path, of jars and of the program; fails the test with what is missing."""
    jars = maven_jars(f"iceberg-rest/{ICEBERG}", ARTIFACTS)
    classes = compiled([SOURCE], f"{jars}/*", jars.parent / "classes")
    return f"{classes}:{jars}/*"


@contextmanager
def rest_catalog(directory: Path, properties: Mapping[str, str]) -> Iterator[str]:
    """Run one; its address. `directory` keeps its database and what it says."""
    given = {"uri": f"jdbc:sqlite:{directory}/catalog.db", "jdbc.schema-version": "V1"}
    arguments = [f"{name}={text}" for name, text in {**given, **properties}.items()]
    with (directory / "catalog.log").open("w") as log:
        process = subprocess.Popen(
            [
                "java",
                "-Xmx256m",
                "-cp",
                _built(),
                "org.apache.iceberg.rest.RestCatalog",
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        assert port.isdecimal(), (directory / "catalog.log").read_text()[-2000:]
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
