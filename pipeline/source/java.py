"""The Java that Spark runs on: found, or one sentence says what is missing.

A program that starts a session of its own checks here first; else Spark's launcher speaks of a
gateway that exited.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

VERSIONS = (17, 21)
"""That Spark 4.2 supports."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')

VersionText = Callable[[str], str]
"""What a `java` says of its version."""


class JavaMissingError(RuntimeError):
    """There is no Java that Spark can use; the text says what to install."""


def find_java(environment: Mapping[str, str], version_text: VersionText | None = None) -> str:
    """The program that Spark will start: below JAVA_HOME, else on the path.

    Raises:
        JavaMissingError: There is none, or another version.
    """
    home = environment.get("JAVA_HOME", "")
    java = str(Path(home, "bin", "java")) if home else "java"
    found = shutil.which(java, path=environment.get("PATH"))
    wanted = " or ".join(map(str, VERSIONS))
    install = f"Spark needs Java {wanted} (Debian: openjdk-17-jre-headless, or set JAVA_HOME)"
    if found is None:
        raise JavaMissingError(f"{install}; there is no {java}")
    match = _VERSION.search((version_text or _ask)(found))
    if match is None or int(match[1]) not in VERSIONS:
        version = match[1] if match else "of an unknown version"
        raise JavaMissingError(f"{install}; {found} is {version}")
    return found


def _ask(java: str) -> str:
    """What it says on standard error."""
    try:
        asked = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stderr
