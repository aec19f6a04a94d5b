"""A log line is one line, in either format, and its pairs are fields."""

import io
import json
import logging
import time
from collections.abc import Iterator

import pytest

from broker.runtime.logs import configure, fields_of, quoted
from storage.environment.alerts import AlertKind, Alerts


@pytest.fixture
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def test_pairs_are_lifted_out_of_the_text() -> None:
    assert fields_of("connection closed peer=127.0.0.1 reason=frame of 7 bytes announced") == (
        "connection closed",
        [("peer", "127.0.0.1"), ("reason", "frame of 7 bytes announced")],
    )
    assert fields_of("nothing here") == ("nothing here", [])
    assert fields_of('a b="x y" c=1') == ("a", [("b", "x y"), ("c", "1")])


def test_quoted_values_are_as_they_were() -> None:
    """Pairs, quotes and line breaks within them are theirs."""
    text = 'see "a" (segments=2 bytes=5)\nand b'
    assert fields_of(f"alert subject=t-0 text={quoted(text)}") == (
        "alert",
        [("subject", "t-0"), ("text", text)],
    )
    assert fields_of('a b="x') == ("a", [("b", "x")])


@pytest.mark.usefixtures("restored")
def test_an_alert_is_named_by_its_subject() -> None:
    """Its sentence is a field beside it."""
    out = io.StringIO()
    configure(log_format="json", level="info", stream=out)
    text = "two folders (segments=2 bytes=5). Remove them."
    Alerts().set(AlertKind.SEGMENTS_SET_ASIDE, "t-0", text)
    fields = json.loads(out.getvalue())
    assert (fields["subject"], fields["text"]) == ("t-0", text)


def test_values_that_are_not_plain_are_quoted() -> None:
    assert quoted("127.0.0.1:9092") == "127.0.0.1:9092"
    assert quoted("two words") == '"two words"'
    assert quoted("line\nbreak") == '"line\\nbreak"'
    assert quoted("") == '""'


@pytest.mark.usefixtures("restored")
def test_key_value_line() -> None:
    out = io.StringIO()
    configure(log_format="key=value", level="info", stream=out)
    logging.getLogger("x").info("broker started node_id=%d", 1)
    line = out.getvalue()
    assert line.count("\n") == 1
    assert 'level=INFO logger=x message="broker started" node_id=1' in line


@pytest.mark.usefixtures("restored")
def test_json_line_with_traceback_is_one_line() -> None:
    out = io.StringIO()
    configure(log_format="json", level="info", stream=out)
    try:
        raise ValueError("a bug")
    except ValueError:
        logging.getLogger("x").exception("handler failed api=FETCH")
    assert out.getvalue().count("\n") == 1
    fields = json.loads(out.getvalue())
    assert fields["message"] == "handler failed"
    assert fields["api"] == "FETCH"
    assert "ValueError: a bug" in fields["traceback"]


@pytest.mark.usefixtures("restored")
def test_level_is_obeyed() -> None:
    out = io.StringIO()
    configure(log_format="json", level="warning", stream=out)
    logging.getLogger("x").info("quiet")
    assert out.getvalue() == ""


def test_a_long_run_of_spaces_costs_no_time() -> None:
    """What a client sends may end up in a line: splitting it is linear."""
    started = time.process_time()
    fields_of("closed client_id=" + " " * 100_000 + "x reason=idle")
    assert time.process_time() - started < 2


@pytest.mark.usefixtures("restored")
def test_lines_of_several_brokers_say_whose_they_are() -> None:
    """In both formats; without a name there is no such field."""
    for log_format, expected in (("key=value", " broker=2 "), ("json", '"broker": "2"')):
        stream = io.StringIO()
        configure(log_format=log_format, level="info", stream=stream, broker="2")
        logging.getLogger("x").info("words")
        assert expected in stream.getvalue()
        stream = io.StringIO()
        configure(log_format=log_format, level="info", stream=stream)
        logging.getLogger("x").info("words")
        assert "broker" not in stream.getvalue()
