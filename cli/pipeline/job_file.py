"""A job's file, as every action reads it."""

from pathlib import Path
from typing import TYPE_CHECKING

from cli.connection import MISTAKEN, CommandError

if TYPE_CHECKING:
    from pipeline.lake.settings.config import JobConfig


def load_job(path: str) -> "JobConfig":
    """The settings in a file.

    Raises:
        CommandError: The file cannot be read.
        JobConfigError: A setting is mistaken.
    """
    from pipeline.lake.settings.config import parse_job

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}", MISTAKEN) from error
    return parse_job(text, path)
