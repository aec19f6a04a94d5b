"""The image's rules: small, not root, from the lock, alive or not by its own word."""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


class Instruction(NamedTuple):
    """One instruction of the Dockerfile, continuations joined."""

    word: str
    text: str


def _instructions() -> list[Instruction]:
    text = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    lines = (line.strip() for line in joined.splitlines())
    return [Instruction(*line.split(maxsplit=1)) for line in lines if line]


ALL = _instructions()
STAGE_STARTS = [index for index, one in enumerate(ALL) if one.word == "FROM"]
BUILD = ALL[STAGE_STARTS[0] : STAGE_STARTS[1]]
FINAL = ALL[STAGE_STARTS[1] :]


def _texts(stage: list[Instruction], word: str) -> list[str]:
    return [one.text for one in stage if one.word == word]


def test_both_stages_are_the_same_slim_python() -> None:
    """The environment built in one runs in the other."""
    assert len(STAGE_STARTS) == 2
    images = [text.split()[0] for text in _texts(ALL, "FROM")]
    assert images == ["python:${PYTHON_VERSION}-slim"] * 2


def test_the_python_is_one_we_support() -> None:
    """It is among the classifiers of the distribution."""
    (argument,) = _texts(ALL[: STAGE_STARTS[0]], "ARG")
    version = argument.removeprefix("PYTHON_VERSION=")
    assert f"Programming Language :: Python :: {version}" in PROJECT["project"]["classifiers"]


def test_everything_installed_is_locked_or_ours() -> None:
    """By hash from a lock, or the wheel built here without asking any index."""
    installs = re.findall(r"pip install ([^&]*)", " && ".join(_texts(BUILD, "RUN")))
    assert len(installs) == 3
    for options in installs:
        locked = "--require-hashes --requirement requirements" in options
        assert locked or "--no-index --no-deps dist/*.whl" in options
    assert "--editable" not in " ".join(installs)


def test_the_wheels_packages_are_copied_and_nothing_else() -> None:
    """A package that is missing in the image would only be missed when it is started."""
    copied = [word for text in _texts(BUILD, "COPY") for word in text.split()[:-1]]
    locks = {"requirements.lock", "requirements-build.lock", "requirements-native.lock"}
    assert set(copied) == locks | {"pyproject.toml", "README.md", "LICENSE"} | set(PACKAGES)


def test_the_image_has_the_compiled_path_or_is_not_made() -> None:
    """Compiled in the first stage, by its compiler; the wheel is not built without."""
    commands = " && ".join(_texts(BUILD, "RUN"))
    assert re.search(r"apt-get install [^&]*\bgcc\b", commands)
    compiled = commands.index("/opt/build/bin/python -m native")
    assert compiled < commands.index("VARVE_NATIVE=require /opt/build/bin/pip wheel")


def test_the_build_context_holds_what_is_copied() -> None:
    """.dockerignore lets in just that."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = {line[1:] for line in lines if line.startswith("!")}
    copied = {word for text in _texts(BUILD, "COPY") for word in text.split()[:-1]}
    scripts = {"docker/entrypoint", "docker/healthcheck"}
    assert let_in == copied | scripts
    assert lines[1] == "*"
    for name in let_in:
        assert (ROOT / name).exists()


def test_nothing_is_built_in_the_final_stage() -> None:
    """No compiler, no package manager, no source: only the environment and two scripts."""
    commands = " ".join(_texts(FINAL, "RUN"))
    assert "pip" not in commands
    assert "apt-get" not in commands
    assert _texts(FINAL, "ADD") == []
    assert [text.split()[-1] for text in _texts(FINAL, "COPY")] == ["/opt/varve", "/usr/local/bin/"]


def test_the_broker_is_not_root() -> None:
    """A numeric user, which Kubernetes can check, set before the entry point."""
    (user,) = _texts(FINAL, "USER")
    assert re.fullmatch(r"[1-9][0-9]*:[1-9][0-9]*", user)
    assert f"--uid {user.split(':')[0]} " in " ".join(_texts(FINAL, "RUN"))


def test_data_lies_in_a_volume_that_the_user_owns() -> None:
    """The default directory ./data, seen from the working directory."""
    (volume,) = _texts(FINAL, "VOLUME")
    (folder,) = _texts(FINAL, "WORKDIR")
    assert volume == f"{folder}/data"
    assert f"chown varve:varve {volume}" in " ".join(_texts(FINAL, "RUN"))


def test_clients_and_administrators_find_their_ports() -> None:
    """Those of the defaults."""
    assert _texts(FINAL, "EXPOSE") == ["9092 9644"]


@pytest.mark.parametrize("word", ["ENTRYPOINT", "HEALTHCHECK"])
def test_processes_are_started_without_a_shell(word: str) -> None:
    """A shell as process 1 would swallow SIGTERM."""
    (text,) = _texts(FINAL, word)
    assert re.search(r'\["[a-z]+"(, "[^"]+")*\]$', text)


def test_health_is_life_not_readiness() -> None:
    """Whoever restarts unhealthy containers must not restart one that recovers."""
    (text,) = _texts(FINAL, "HEALTHCHECK")
    assert '"/healthz"' in text


def test_stopping_is_sigterm() -> None:
    """Which the broker answers with a clean shutdown."""
    assert _texts(FINAL, "STOPSIGNAL") == ["SIGTERM"]


def test_the_folder_is_no_package() -> None:
    """An `__init__.py` would hide the Docker SDK that test tools import."""
    assert not list((ROOT / "docker").rglob("*.py"))
