"""The table of error codes."""

from kio.schema.errors import ErrorCode as KioErrorCode

from protocol.error_codes import ErrorCode


def test_numbers_names_and_retriability_are_kafkas() -> None:
    """Compared with kio's table, which comes from Kafka's source."""
    ours = {code.value: (code.name, code.retriable) for code in ErrorCode}
    theirs = {int(code): (code.name.upper(), code.retriable) for code in KioErrorCode}
    assert ours == {number: row for number, row in theirs.items() if number <= 133}


def test_there_is_no_gap() -> None:
    """-1 to 133."""
    assert [code.value for code in sorted(ErrorCode)] == list(range(-1, 134))


def test_every_message_is_one_sentence() -> None:
    """A code is an int, a message is for people and differs from all others."""
    assert all(code.message.endswith(".") for code in ErrorCode)
    assert len({code.message for code in ErrorCode}) == len(ErrorCode)
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert int(ErrorCode.NONE) == 0
