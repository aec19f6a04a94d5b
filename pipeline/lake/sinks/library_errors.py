"""Errors of deltalake and pyiceberg as ours: a conflict, or a table that is out of reach."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pipeline.lake.errors import CommitConflictError, TableUnavailableError

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")


@contextmanager
def delta_refusals(name: str) -> Iterator[None]:
    """Translate deltalake's errors into ours."""
    from deltalake.exceptions import CommitFailedError, DeltaError

    try:
        yield
    except CommitFailedError as error:
        raise CommitConflictError(f"{name}: {_line(error)}") from error
    except (DeltaError, OSError) as error:
        raise TableUnavailableError(f"{name}: {_line(error)}") from error


def _line(error: Exception) -> str:
    """In one line, without the library's colours."""
    return " ".join(_COLOUR.sub("", str(error)).replace("\u21b3", " ").split())


@contextmanager
def iceberg_refusals(name: str) -> Iterator[None]:
    """Translate pyiceberg's errors, and those of its catalogs' libraries, into ours."""
    from pyiceberg.exceptions import (
        CommitFailedException,
        RESTError,
        ServiceUnavailableError,
        ValidationException,
    )
    from requests.exceptions import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (CommitFailedException, ValidationException) as error:
        raise CommitConflictError(f"{name}: {error}") from error
    except (RESTError, ServiceUnavailableError, RequestException, OSError) as error:
        raise TableUnavailableError(f"{name}: {error}") from error
    except SQLAlchemyError as error:
        # The library's text may have the catalog's address, and that a password.
        raise TableUnavailableError(f"{name}: {type(error).__name__}") from None
