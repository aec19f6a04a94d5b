"""Released Apache Kafka: resolved by Maven once, then kept in `.build/kafka/<version>`.

Nothing here knows where Maven fetches from: that is the machine's own setting. Kafka's jars are
never part of this repository; they are used as an outside reference, by tests and measurements.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

KAFKA_VERSION = "4.2.0"
SCALA_VERSION = "2.13"
LOG4J_VERSION = "2.25.3"

# What Kafka's own start script uses when nothing is configured.
KAFKA_HEAP = ("-Xmx1G", "-Xms1G")

_BUILD = Path(__file__).resolve().parent.parent / ".build" / "kafka" / KAFKA_VERSION

_POM = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>varve.build</groupId>
  <artifactId>kafka-release</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_{SCALA_VERSION}</artifactId>
      <version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-tools</artifactId>
      <version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>{LOG4J_VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""

# Kafka's own tests hold the one RemoteStorageManager that is published with it: LocalTieredStorage.
_TEST_POM = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>varve.build</groupId>
  <artifactId>kafka-release-tests</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-storage</artifactId>
      <version>{KAFKA_VERSION}</version>
      <classifier>test</classifier>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-clients</artifactId>
      <version>{KAFKA_VERSION}</version>
      <classifier>test</classifier>
    </dependency>
  </dependencies>
</project>
"""

_LOG4J = """rootLogger.level = {level}
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = {target}
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
"""

# What Kafka's start scripts give to Java, of brokers and of tools alike.
START_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)

# What the start scripts of kafka-producer-perf-test and its like give to Java.
PERFORMANCE_OPTIONS = ("-Xmx512M", *START_OPTIONS)

# Tools live for a second: the small compiler and the serial collector start fastest.
_TOOL_OPTIONS = ("-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class KafkaReleaseError(RuntimeError):
    """Released Kafka cannot be used here; the text says what to install."""


def _require(program: str, package: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise KafkaReleaseError(
            f"`{program}` was not found: install {package} (Debian: apt-get install {package})"
        )
    return path


@dataclass(frozen=True, slots=True)
class KafkaRelease:
    """The jars of one Kafka release and a Java to run them."""

    java: str
    directory: Path
    with_test_jars: bool = False

    @classmethod
    def resolve(cls, *, with_test_jars: bool = False) -> "KafkaRelease":
        """Find the release, fetching it on first use.

        Args:
            with_test_jars: Also what Kafka's tests have for brokers: LocalTieredStorage.

        Raises:
            KafkaReleaseError: Java or Maven is missing, or Maven cannot resolve the release.
        """
        java = _require("java", "openjdk-17-jre-headless")
        _BUILD.mkdir(parents=True, exist_ok=True)
        with (_BUILD / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (_BUILD / "complete").exists():
                cls._fetch(_POM, _BUILD / "pom.xml", _BUILD / "libs")
                (_BUILD / "complete").touch()
            if with_test_jars and not (_BUILD / "complete-tests").exists():
                # What these need in turn is for tests that run, not for a class that is loaded.
                only = "-DexcludeTransitive=true"
                cls._fetch(_TEST_POM, _BUILD / "pom-tests.xml", _BUILD / "test-libs", only)
                (_BUILD / "complete-tests").touch()
        for level, target in (("INFO", "SYSTEM_OUT"), ("WARN", "SYSTEM_ERR")):
            path = _BUILD / f"log4j2-{level.lower()}.properties"
            if not path.exists():
                path.write_text(_LOG4J.format(level=level, target=target))
        return cls(java, _BUILD, with_test_jars)

    @staticmethod
    def _fetch(pom: str, pom_path: Path, jars: Path, *options: str) -> None:
        maven = _require("mvn", "maven")
        pom_path.write_text(pom)
        shutil.rmtree(jars, ignore_errors=True)
        command = [maven, "-B", "-q", "-f", str(pom_path)]
        command += ["dependency:copy-dependencies", "-DincludeScope=runtime", *options]
        command += [f"-DoutputDirectory={jars}"]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
        if result.returncode != 0:
            tail = "\n".join((result.stdout + result.stderr).splitlines()[-20:])
            raise KafkaReleaseError(f"Maven could not resolve Kafka {KAFKA_VERSION}:\n{tail}")

    @property
    def classpath(self) -> str:
        """All jars, for `java -cp`."""
        libraries = ["libs", "test-libs"] if self.with_test_jars else ["libs"]
        return os.pathsep.join(str(self.directory / name / "*") for name in libraries)

    @property
    def logging_options(self) -> tuple[str, ...]:
        """A broker logs as Kafka's default configuration does: INFO, to standard output."""
        return (f"-Dlog4j2.configurationFile={self.directory / 'log4j2-info.properties'}",)

    def tool_command(
        self, main_class: str, arguments: Sequence[str], options: Sequence[str] = _TOOL_OPTIONS
    ) -> list[str]:
        """The command line that runs one of Kafka's tools; `options` are Java's."""
        return [
            self.java,
            *options,
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2-warn.properties'}",
            "-cp",
            self.classpath,
            main_class,
            *arguments,
        ]

    def tool(
        self,
        main_class: str,
        *arguments: str,
        text: str | None = None,
        timeout_s: float = 180.0,
        check: bool = True,
        options: Sequence[str] = _TOOL_OPTIONS,
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's tools to its end.

        Args:
            main_class: As the shell script of the tool names it.
            arguments: The tool's own options.
            text: Goes to its standard input.
            timeout_s: After this the tool is killed and `subprocess.TimeoutExpired` raised.
            check: Raise `KafkaReleaseError` with the tool's output when it exits with another
                code than 0.
            options: Java's.
        """
        result = subprocess.run(
            self.tool_command(main_class, arguments, options),
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # records are printed as they are
            timeout=timeout_s,
            check=False,
        )
        if check and result.returncode != 0:
            raise KafkaReleaseError(
                f"{main_class} {' '.join(arguments)} exited with {result.returncode}:\n"
                f"{result.stdout}\n{result.stderr}"
            )
        return result

    def format_storage(self, properties: Path) -> None:
        """Give a data directory its `meta.properties`, as KRaft asks before the first start."""
        self.tool(
            "kafka.tools.StorageTool",
            *("format", "--ignore-formatted", "--cluster-id", "VarveBesideKafka00000A"),
            *("--config", str(properties)),
        )


TOPICS = "org.apache.kafka.tools.TopicCommand"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CONFIGS = "kafka.admin.ConfigCommand"
CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
VERIFIABLE_PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"
END_TO_END_LATENCY = "org.apache.kafka.tools.EndToEndLatency"
DUMP_LOG = "kafka.tools.DumpLogSegments"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
BROKER_API_VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
LEADER_ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
REASSIGN_PARTITIONS = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
