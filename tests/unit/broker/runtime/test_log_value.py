"""What strangers write does not shape our log."""

from broker.runtime.log_value import log_value


def test_plain_names_stay_plain() -> None:
    assert log_value("my-group.1") == "my-group.1"


def test_lines_and_pairs_cannot_be_forged() -> None:
    assert log_value("a\nlevel=ERROR b") == '"a\\nlevel=ERROR b"'


def test_long_texts_are_cut() -> None:
    assert log_value("x" * 1_000) == "x" * 255
