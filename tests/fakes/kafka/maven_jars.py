"""Released jars that tests run beside us: resolved by Maven once, then kept in `.build`.

Each is named with its version, since what they name in turn has older versions of the same among
it. Nothing here knows where Maven fetches from, and no jar is part of this repository.
"""

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

BUILD = Path(__file__).resolve().parents[3] / ".build"

Artifact = tuple[str, ...]
"""Group, name, version, and a classifier if there is one."""


def maven_jars(name: str, artifacts: Sequence[Artifact]) -> Path:
    """The folder with these jars; fails the test with what is missing or what Maven said."""
    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pom, complete = _pom(name, artifacts), folder / "complete"
        if not complete.exists() or complete.read_text() != pom:
            _fetch(folder, pom)
            complete.write_text(pom)
    return folder / "jars"


def run_tool(*command: str) -> None:
    """Run a program of Java's to its end; fails the test with the end of what it said."""
    if shutil.which(command[0]) is None:
        pytest.fail(f"`{command[0]}` was not found: install it (Debian: maven, default-jdk)")
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    tail = "\n".join((result.stdout + result.stderr).splitlines()[-20:])
    assert result.returncode == 0, f"{command[0]}:\n{tail}"


def compiled(sources: Sequence[Path], jars: str, folder: Path) -> Path:
    """The folder, within `folder`, of these sources' classes; compiles when one has changed.

    Args:
        sources: Java, compiled together.
        jars: A class path.
        folder: Of nothing else; classes of former sources go.
    """
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    target = folder / digest
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            for former in folder.iterdir():
                if former.is_dir():
                    shutil.rmtree(former)
            fresh = folder / f"{digest}.part"
            run_tool("javac", "-nowarn", "-d", str(fresh), "-cp", jars, *map(str, sources))
            fresh.rename(target)
    return target


def _fetch(folder: Path, pom: str) -> None:
    (folder / "pom.xml").write_text(pom)
    shutil.rmtree(folder / "jars", ignore_errors=True)
    run_tool(
        *("mvn", "-B", "-q", "-f", str(folder / "pom.xml"), "dependency:copy-dependencies"),
        *("-DexcludeTransitive=true", f"-DoutputDirectory={folder / 'jars'}"),
    )


def _pom(name: str, artifacts: Sequence[Artifact]) -> str:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version>{''.join(f'<classifier>{c}</classifier>' for c in more)}"
        "</dependency>\n"
        for group, artifact, version, *more in artifacts
    )
    return (
        "<project>\n<modelVersion>4.0.0</modelVersion>\n<groupId>varve.build</groupId>\n"
        f"<artifactId>{name.replace('/', '-')}</artifactId>\n<version>1</version>\n"
        f"<dependencies>\n{dependencies}</dependencies>\n</project>\n"
    )
