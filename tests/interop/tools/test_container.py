"""The image without an engine: its entry point, as a process with the image's environment.

No configuration means listening on every interface at Kafka's port. That must neither reach nor be
reached by anything else, so the process gets a network of its own, as in a container.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOCKER = ROOT / "docker"


def _own_network() -> list[str]:
    """Command that starts another one in a network of its own."""
    unshare = shutil.which("unshare")
    assert unshare is not None
    return [unshare, "--net"] if os.geteuid() == 0 else [unshare, "--map-root-user", "--net"]


def _networks_can_be_made() -> bool:
    try:
        return subprocess.run([*_own_network(), "true"], check=False).returncode == 0
    except AssertionError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="networks of one's own are Linux")
def test_no_configuration_at_all_is_a_working_node(tmp_path: Path) -> None:
    """It becomes ready, is healthy, serves localhost:9092, and stops cleanly on SIGTERM."""
    if not _networks_can_be_made():
        pytest.skip("this user may not make a network (unshare --net)")
    image = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    driver = [sys.executable, "-m", "tests.interop.tools.container_network"]
    programs = [str(DOCKER / "entrypoint"), str(DOCKER / "healthcheck")]
    ended = subprocess.run(
        [*_own_network(), *driver, *programs],
        cwd=tmp_path,
        env=image,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert report["values"] == [str(number) for number in range(10)]
    assert report["healthy"] is True
    assert report["exit_status"] == 0
    assert "PLAINTEXT://0.0.0.0:9092" in report["banner"]
    assert "first-0" in report["data"]
    assert "Traceback" not in ended.stderr
