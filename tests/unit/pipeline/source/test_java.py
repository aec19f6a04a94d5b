"""The Java that Spark runs on."""

import os
from pathlib import Path

import pytest

from pipeline.source.java import JavaMissingError, find_java


def program(folder: Path, text: str) -> str:
    """A `java` that tells its version as Java does: on standard error."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.1"])
def test_a_java_that_spark_supports_is_found(tmp_path: Path, version: str) -> None:
    java = program(tmp_path, f'openjdk version "{version}" 2025-04-15')
    assert find_java({"PATH": os.path.dirname(java) + os.pathsep + "/bin"}) == java
    assert find_java({"JAVA_HOME": str(tmp_path), "PATH": "/bin"}) == java


def test_the_home_wins_over_the_path(tmp_path: Path) -> None:
    """As in Spark's launcher."""
    old = program(tmp_path / "old", 'java version "1.8.0_292"')
    program(tmp_path / "new", 'openjdk version "17.0.1"')
    path = os.path.dirname(old) + os.pathsep + "/bin"
    home = str(tmp_path / "new")
    assert find_java({"JAVA_HOME": home, "PATH": path}).startswith(home)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('java version "1.8.0_292"', "is 8"),
        ('openjdk version "11.0.2"', "is 11"),
        ("what?", "of an unknown version"),
    ],
)
def test_another_version_is_told(tmp_path: Path, text: str, said: str) -> None:
    program(tmp_path, text)
    with pytest.raises(JavaMissingError, match="needs Java 17 or 21") as caught:
        find_java({"JAVA_HOME": str(tmp_path), "PATH": "/bin"})
    assert said in str(caught.value)


def test_none_at_all_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(JavaMissingError, match="there is no java") as caught:
        find_java({"PATH": str(tmp_path)})
    assert "\n" not in str(caught.value)
