"""Kafka's own classes as the other side: a program of a few lines that Java compiles in memory.

The program reads a question a line from standard input and writes an answer a line.
"""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bench.kafka_release import KafkaRelease, KafkaReleaseError

Ask = Callable[[Sequence[str]], list[str]]


def kafka_program(directory: Path, class_name: str, source: str, *, timeout_s: float = 300) -> Ask:
    """Answers of a Java program that has all of Kafka's jars; fails where it cannot run."""
    if shutil.which("javac") is None:
        pytest.fail("needs a Java that compiles: openjdk-17-jdk-headless")
    try:
        release = KafkaRelease.resolve()
    except KafkaReleaseError as error:
        pytest.fail(str(error))
    path = directory / f"{class_name}.java"
    path.write_text(source)

    def ask(questions: Sequence[str]) -> list[str]:
        text = "\n".join(questions) + "\n"
        answers = release.tool(str(path), text=text, timeout_s=timeout_s).stdout.splitlines()
        assert len(answers) == len(questions)
        return answers

    return ask
