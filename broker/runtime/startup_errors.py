"""Why a broker did not start, in a sentence for whoever started it."""


class StartupError(Exception):
    """The message is all there is to say: no traceback is shown."""
