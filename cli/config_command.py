"""`varve config`: what the settings come to, and where each comes from. Secrets are masked.

Without `--effective` only those settings are shown that were set.
"""

import argparse
import json

from cli.settings_arguments import BAD_SETTINGS, add_settings_arguments, load_or_report
from config.load import EffectiveSetting, LoadedConfig, Source


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_settings_arguments(parser)
    parser.add_argument("--effective", action="store_true", help="every setting, defaults included")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")


def run(args: argparse.Namespace) -> int:
    """Print the settings."""
    loaded = load_or_report(args)
    if loaded is None:
        return BAD_SETTINGS
    settings = [
        setting
        for setting in loaded.settings
        if args.effective or setting.source is not Source.DEFAULT
    ]
    settings.sort(key=lambda setting: setting.row.name)
    if args.json:
        print(json.dumps(_as_object(loaded, settings), indent=2))
    else:
        _print_lines(loaded, settings)
    return 0


def _as_object(loaded: LoadedConfig, settings: list[EffectiveSetting]) -> dict[str, object]:
    return {
        "settings": {
            setting.row.name: {
                "value": setting.shown,
                "source": setting.source.value,
                "origin": setting.origin,
            }
            for setting in settings
        },
        "warnings": list(loaded.warnings),
    }


def _print_lines(loaded: LoadedConfig, settings: list[EffectiveSetting]) -> None:
    for warning in loaded.warnings:
        print(f"# {warning}")
    for setting in settings:
        shown = "" if setting.shown is None else setting.shown
        print(f"{setting.row.name}={shown}".ljust(64) + f"  # {setting.origin}")
