"""`varve features`: show, raise and lower the levels of features (KIP-584).

Exit status: 0 done, 1 the broker is out of reach or has refused, 2 mistaken options.
"""

import argparse
from typing import Any

from cli.actions import Action, add_actions, run_action
from cli.connection import FAILED, ClientFactory, answer_text, client, complain
from cli.table import format_json, format_table

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    add_actions(parser, ACTIONS)


def _open_admin(**settings: Any) -> Any:
    # Loads the client library.
    from cli.admin.feature_updates import open_feature_admin

    return open_feature_admin(**settings)


def run(args: argparse.Namespace, *, connect: ClientFactory = _open_admin) -> int:
    """Do the action."""
    return run_action(ACTIONS, args, connect)


def _level(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not name or not equals or not level.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not FEATURE=LEVEL")
    return name, int(level)


def _no_arguments(_parser: argparse.ArgumentParser) -> None:
    pass


def _describe(args: argparse.Namespace, connect: ClientFactory) -> int:
    with client(connect, args) as admin:
        features = admin.describe_features()
    rows: list[dict[str, Any]] = []
    for name, found in sorted(features.items()):
        supported = found.get("supported", (None, None))
        rows.append(
            {
                "feature": name,
                "lowest": supported[0],
                "highest": supported[1],
                "level": found.get("finalized", (0, 0))[1],
                "epoch": found.get("finalized_epoch"),
            }
        )
    if args.json:
        print(format_json(rows))
    else:
        headings = ("FEATURE", "LOWEST", "HIGHEST", "LEVEL", "EPOCH")
        print(format_table(headings, [list(row.values()) for row in rows]))
    return 0


def _upgrade_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("levels", type=_level, nargs="+", metavar="FEATURE=LEVEL")
    parser.add_argument("--dry-run", action="store_true", help="only validate the change")


def _downgrade_arguments(parser: argparse.ArgumentParser) -> None:
    _upgrade_arguments(parser)
    parser.add_argument(
        "--unsafe", action="store_true", help="also where the change loses metadata"
    )


def _update(args: argparse.Namespace, connect: ClientFactory, upgrade_type: int) -> int:
    levels = dict(args.levels)
    with client(connect, args) as admin:
        refusals = admin.update_feature_levels(
            {name: (upgrade_type, level) for name, level in levels.items()},
            validate_only=args.dry_run,
        )
    refused = {refusal.feature for refusal in refusals}
    done = {name: level for name, level in levels.items() if not refused & {name, None}}
    if args.json:
        print(format_json({"levels": done, "dry_run": args.dry_run}))
    else:
        for name, level in done.items():
            print(f"{name} {'would be' if args.dry_run else 'is'} at level {level}")
    for feature, error_code, message in refusals:
        subject = "features" if feature is None else f"feature {feature!r}"
        complain(answer_text(subject, error_code, message))
    return FAILED if refusals else 0


def _upgrade(args: argparse.Namespace, connect: ClientFactory) -> int:
    return _update(args, connect, UPGRADE)


def _downgrade(args: argparse.Namespace, connect: ClientFactory) -> int:
    return _update(args, connect, UNSAFE_DOWNGRADE if args.unsafe else SAFE_DOWNGRADE)


ACTIONS = {
    "describe": Action("show features and their levels", _no_arguments, _describe),
    "upgrade": Action("raise levels", _upgrade_arguments, _upgrade),
    "downgrade": Action("lower levels", _downgrade_arguments, _downgrade),
}
