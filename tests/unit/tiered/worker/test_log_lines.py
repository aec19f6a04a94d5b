"""Lines from the process to the broker's log."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiered.worker import log_lines
from tiered.worker.log_lines import LINE_BYTES_MAX, LineFormatter, LogLines, configure


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """As it was, afterwards."""
    root = logging.getLogger()
    handlers, level, raising = root.handlers[:], root.level, logging.raiseExceptions
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = raising


def test_record_crosses(root: logging.Logger, caplog: pytest.LogCaptureFixture) -> None:
    stream = io.StringIO()
    configure("INFO", stream)
    logger = logging.getLogger("tiered.x")
    logger.debug("unheard")
    logger.info("segment copied topic=%s", "t%s é\n")
    try:
        raise ValueError("inner")
    except ValueError:
        logger.exception("copy failed")
    written = stream.getvalue().encode()
    assert written.count(b"\n") == 2
    root.handlers[:] = [caplog.handler]
    LogLines().feed(written)
    first, second = caplog.records
    assert (first.name, first.levelname) == ("tiered.x", "INFO")
    assert first.getMessage() == "segment copied topic=t%s é\n process=tier"
    assert second.getMessage() == "copy failed process=tier"
    assert "ValueError: inner" in logging.Formatter().format(second)


@pytest.mark.parametrize(
    "line",
    [
        b"Fatal Python error: Segmentation fault",
        b"[]",
        b'["INFO", "a", "b"]',
        b'["INFO", 1, "b", null]',
        b"[" * 30_000,
        b"\xff\xfe",
        b"{}",
    ],
)
def test_other_lines_are_warnings(line: bytes, caplog: pytest.LogCaptureFixture) -> None:
    LogLines().feed(line + b"\n\n")
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("tier process wrote line=")
    assert "\n" not in record.getMessage()


def test_unknown_level_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    LogLines().feed(b'["LOUD", "a", "b", null]\n')
    assert caplog.records[0].levelname == "WARNING"


def test_line_without_an_end_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    lines = LogLines()
    for _ in range(100):
        lines.feed(b"x" * 1000)
        assert len(lines._rest) <= LINE_BYTES_MAX
    lines.end()
    assert 3 <= len(caplog.records) <= 5
    lines.end()
    assert lines._rest == b""


@given(st.lists(st.text(max_size=20), max_size=5), st.lists(st.integers(0, 300), max_size=6))
def test_lines_in_any_pieces(messages: list[str], cuts: list[int]) -> None:
    found: list[str] = []

    class Catch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.args[0])  # type: ignore[index,arg-type]  # one text

    written = "".join(
        LineFormatter().format(logging.LogRecord("hyp", 30, "", 0, message, None, None)) + "\n"
        for message in messages
    ).encode()
    logger = logging.getLogger("hyp")
    handler = Catch()
    logger.addHandler(handler)
    try:
        lines = LogLines()
        position = 0
        for cut in sorted(cuts):
            lines.feed(written[position:cut])
            position = max(cut, position)
        lines.feed(written[position:])
    finally:
        logger.removeHandler(handler)
    assert found == messages


def test_long_message_is_cut() -> None:
    record = logging.LogRecord("a", 30, "", 0, "x" * 10_000, None, None)
    assert len(json.loads(LineFormatter().format(record))[2]) == log_lines.MESSAGE_MAX
