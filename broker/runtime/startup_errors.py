"""Errors that end a broker's start, with a sentence for the operator."""


class StartupError(Exception):
    """A start that failed; only the message is shown, no traceback."""
