"""`varve metadata`."""

import argparse
from pathlib import Path

import pytest

from cli.cluster.metadata_copy import Place, place, store_address
from cli.main import main


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sqlite:/a,/b", Place(("/a", "/b"))),
        ("sqlite:./data", Place(("./data",))),
        ("sqlite:///a", Place(("/a",))),
        ("etcd://h:1,i:2", Place(address="etcd://h:1,i:2")),
        ("etcd:h:1", Place(address="etcd://h:1")),
        ("etcd:http://h:1/", Place(address="etcd://h:1")),
        ("etcd:https://h:1", Place(address="etcds://h:1")),
        ("etcds://h", Place(address="etcds://h")),
    ],
)
def test_places(text: str, found: Place) -> None:
    assert place(text) == found


@pytest.mark.parametrize("text", ["", "sqlite:", "sqlite:a,,b", "etcd:", "/data", "http://h:1"])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        place(text)


def test_an_address_is_no_directory() -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        store_address("sqlite:/a")


def test_one_end_is_a_node_and_the_other_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["metadata", "copy", "--from=sqlite:/a", "--to=sqlite:/b"]
    assert main(words) == 2
    assert "one of --from and --to is a node" in capsys.readouterr().err


def test_a_directory_that_is_not_there_is_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["metadata", "copy", f"--from=sqlite:{tmp_path}/none", "--to=etcd://127.0.0.1:1"]
    assert main(words) == 1
    assert "is not a directory" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
