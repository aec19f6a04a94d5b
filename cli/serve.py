"""`varve serve`: read the settings, run the broker until a signal stops it.

Exit status: 0 after a clean stop, 2 when the settings are refused, else what the broker says.
"""

import argparse

from cli.settings_arguments import BAD_SETTINGS, add_settings_arguments, load_or_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_settings_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the broker."""
    loaded = load_or_report(args)
    if loaded is None:
        return BAD_SETTINGS
    # Imported after the settings are good: a mistake is reported at once, not after half a second.
    from broker.app import run as run_broker

    return run_broker(loaded)
