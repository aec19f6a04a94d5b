"""S3 servers on this machine: those that `.ci/s3-servers` has built, one process each.

`docs/s3-servers.md` says what each is and how it differs from S3.
"""

import contextlib
import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

BINARIES = Path(__file__).resolve().parent.parent / ".build" / "s3" / "bin"

ACCESS_KEY_ID = "varve-test"
SECRET_ACCESS_KEY = "varve-test-secret"
REGION = "us-east-1"

START_TIMEOUT_S = 30.0


def free_port() -> int:
    """A free port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class ServerKind:
    """How a server is started; `{port}`, `{port2}` and `{data}` are filled in.

    Attributes:
        arguments: After the program's name.
        environment: On top of ours.
        source: Module and version that `.ci/s3-servers` builds.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str]
    source: str


SERVERS: dict[str, ServerKind] = {
    "versitygw": ServerKind(
        (
            *("--port", "127.0.0.1:{port}", "--region", REGION, "--keep-alive", "--quiet"),
            *("posix", "{data}"),
        ),
        {"ROOT_ACCESS_KEY_ID": ACCESS_KEY_ID, "ROOT_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY},
        "github.com/versity/versitygw/cmd/versitygw@v1.8.0",
    ),
    "minio": ServerKind(
        (
            *("server", "--quiet", "--address", "127.0.0.1:{port}"),
            *("--console-address", "127.0.0.1:{port2}", "{data}"),
        ),
        {
            "MINIO_ROOT_USER": ACCESS_KEY_ID,
            "MINIO_ROOT_PASSWORD": SECRET_ACCESS_KEY,
            "MINIO_BROWSER": "off",
        },
        "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c",
    ),
    "gofakes3": ServerKind(
        ("-host", "127.0.0.1:{port}", "-backend", "memory", "-quiet"),
        {},
        "github.com/johannesboyne/gofakes3/cmd/gofakes3@v1.2.0",
    ),
}


def is_built(name: str) -> bool:
    """Whether `.ci/s3-servers` has built it."""
    return (BINARIES / name).exists()


def broker_settings(url: str, bucket: str) -> dict[str, str]:
    """Of a broker that keeps its segments there."""
    return {
        "rsm.config.storage.backend.class": "s3",
        "rsm.config.storage.s3.bucket.name": bucket,
        "rsm.config.storage.s3.region": REGION,
        "rsm.config.storage.s3.endpoint.url": url,
        "rsm.config.storage.s3.path.style.access.enabled": "true",
        "rsm.config.storage.aws.access.key.id": ACCESS_KEY_ID,
        "rsm.config.storage.aws.secret.access.key": SECRET_ACCESS_KEY,
    }


@dataclass(frozen=True, slots=True)
class S3Server:
    """One that runs."""

    url: str
    pid: int


@contextlib.contextmanager
def s3_server(name: str) -> Iterator[str]:
    """Run one; its address. See `running_s3_server`."""
    with running_s3_server(name) as server:
        yield server.url


@contextlib.contextmanager
def running_s3_server(name: str, kept: Path | None = None) -> Iterator[S3Server]:
    """Run one; its address and process. Its data goes when it ends, unless it lies in `kept`.

    Raises:
        RuntimeError: It does not start; with the end of what it said.
    """
    kind = SERVERS[name]
    port = free_port()
    with (
        tempfile.TemporaryDirectory(prefix=f"varve-{name}-") as directory,
        tempfile.TemporaryFile() as said,
    ):
        data = kept or Path(directory) / "data"
        data.mkdir(exist_ok=True)
        filled = {"port": port, "port2": free_port(), "data": data}
        process = subprocess.Popen(
            [BINARIES / name, *(argument.format(**filled) for argument in kind.arguments)],
            cwd=directory,
            env={**os.environ, **kind.environment, "HOME": directory},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
        try:
            if not _answers(port, process):
                said.seek(0)
                text = said.read().decode(errors="replace")
                raise RuntimeError(f"{name} does not answer; it said: {text[-2000:]}")
            yield S3Server(f"http://127.0.0.1:{port}", process.pid)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(port: int, process: subprocess.Popen[bytes]) -> bool:
    give_up = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < give_up and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=2):
                return True
        except urllib.error.HTTPError as answer:
            answer.close()
            if answer.code < 500:
                return True
        except OSError:
            pass
        time.sleep(0.1)
    return False
