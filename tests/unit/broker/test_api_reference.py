"""The table of served APIs is what the broker advertises."""

from broker.api_reference import PAGE, reference


def test_the_page_is_fresh() -> None:
    """`make docs` writes it again."""
    assert PAGE.read_text() == reference()
