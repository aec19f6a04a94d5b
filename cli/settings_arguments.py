"""The options that give a broker's settings, for every command that needs them."""

import argparse
import os
import sys

from config.errors import ConfigLoadError
from config.load import LoadedConfig, load

BAD_SETTINGS = 2
"""Exit status when the settings are refused."""


def add_settings_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `--config` and `--set`."""
    parser.add_argument(
        "--config", metavar="FILE", help="server.properties, or YAML when it ends in .yaml or .yml"
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="assignments",
        help="one setting; overrides the file and the environment; may be repeated",
    )


def load_or_report(args: argparse.Namespace) -> LoadedConfig | None:
    """The settings, or None after every mistake has been written to standard error."""
    try:
        return load(
            config_file=args.config, environment=dict(os.environ), assignments=args.assignments
        )
    except ConfigLoadError as error:
        print(f"varve: {error}", file=sys.stderr)
        return None
