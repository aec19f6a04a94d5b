"""What the tables' libraries raise, as a job takes it."""

import pytest
from deltalake.exceptions import CommitFailedError, DeltaError
from pyiceberg.exceptions import CommitFailedException, ServiceUnavailableError
from sqlalchemy.exc import SQLAlchemyError

from pipeline.lake.errors import CommitConflictError, TableUnavailableError
from pipeline.lake.sinks.library_errors import delta_refusals, iceberg_refusals


def test_a_commit_that_was_overtaken_is_a_conflict() -> None:
    with pytest.raises(CommitConflictError, match="orders: version 7"), delta_refusals("orders"):
        raise CommitFailedError("version 7")
    with pytest.raises(CommitConflictError, match="orders: main"), iceberg_refusals("orders"):
        raise CommitFailedException("main has changed")


@pytest.mark.parametrize("error", [DeltaError("\x1b[31mno\x1b[0m\n  answer"), OSError("no answer")])
def test_deltalake_speaks_in_one_line_without_colours(error: Exception) -> None:
    with pytest.raises(TableUnavailableError) as found, delta_refusals("orders"):
        raise error
    assert str(found.value) == "orders: no answer"


def test_the_catalogs_address_and_password_are_not_repeated() -> None:
    with pytest.raises(TableUnavailableError) as found, iceberg_refusals("orders"):
        raise SQLAlchemyError("postgresql://admin:secret@catalog")
    assert str(found.value) == "orders: SQLAlchemyError"
    with pytest.raises(TableUnavailableError, match="503"), iceberg_refusals("orders"):
        raise ServiceUnavailableError("503")
