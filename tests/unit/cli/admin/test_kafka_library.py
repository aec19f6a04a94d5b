"""The client library has all codecs, and does not write to the terminal."""

import logging

import pytest
from kafka import codec

from cli.admin.kafka_library import KafkaError

DATA = b"a line of text, repeated\n" * 5000


@pytest.mark.parametrize("name", ["snappy", "zstd"])
def test_codec_is_there_and_returns_the_bytes(name: str) -> None:
    """The library compresses and decompresses with it, although its own package is absent."""
    assert getattr(codec, f"has_{name}")()
    packed = getattr(codec, f"{name}_encode")(DATA)
    assert len(packed) < len(DATA) / 5
    assert getattr(codec, f"{name}_decode")(packed) == DATA


def test_the_librarys_log_stays_away(capfd: pytest.CaptureFixture[str]) -> None:
    """Otherwise Python prints a library's warnings to standard error."""
    logging.getLogger("kafka.net").warning("something went wrong inside")
    assert capfd.readouterr().err == ""


def test_errors_of_brokers_have_their_number() -> None:
    """`cli.connection` takes the code from there."""
    from kafka.errors import UnknownTopicOrPartitionError

    assert issubclass(UnknownTopicOrPartitionError, KafkaError)
    assert UnknownTopicOrPartitionError.errno == 3
