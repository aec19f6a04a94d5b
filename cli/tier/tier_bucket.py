"""A bucket as a command reaches it, without a broker.

    --config FILE, --set KEY=VALUE, KAFKA_*   as `varve serve`: the bucket of that broker
    --bucket B [--endpoint U] [--region R] [--prefix P]
    --root DIR [--prefix P]                   a directory as object store

The latter two are short for settings. Keys of encrypted segments need the settings.
"""

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from cli.connection import CommandError
from cli.settings_arguments import BAD_SETTINGS, add_settings_arguments, load_or_report

if TYPE_CHECKING:
    from config.broker import BrokerConfig
    from config.tier import TierConfig
    from tiered.tier import Tier

T = TypeVar("T")

_SHORT = {
    "bucket": "rsm.config.storage.s3.bucket.name",
    "endpoint": "rsm.config.storage.s3.endpoint.url",
    "region": "rsm.config.storage.s3.region",
    "prefix": "rsm.config.key.prefix",
    "root": "rsm.config.storage.root",
}


def add_bucket_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options above."""
    add_settings_arguments(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--bucket", metavar="NAME", help="an S3 bucket")
    which.add_argument("--root", metavar="DIR", help="a directory as object store")
    parser.add_argument("--endpoint", metavar="URL", help="endpoint of an S3-compatible store")
    parser.add_argument("--region", metavar="NAME")
    parser.add_argument("--prefix", metavar="TEXT", help="prefix of every object key")


def names_a_bucket(args: argparse.Namespace) -> bool:
    """Whether any of the options was given."""
    return bool(args.config or args.assignments or any(vars(args).get(name) for name in _SHORT))


def bucket_settings(args: argparse.Namespace) -> "BrokerConfig":
    """The broker's settings that the options amount to, with remote storage switched on.

    Raises:
        CommandError: They are invalid; every mistake has been printed.
    """
    assignments = [
        f"{key}={value}" for name, key in _SHORT.items() if (value := vars(args).get(name))
    ]
    if args.bucket:
        assignments.append("rsm.config.storage.backend.class=s3")
    elif args.root:
        assignments.append("rsm.config.storage.backend.class=filesystem")
    args.assignments = ["remote.log.storage.system.enable=true", *args.assignments, *assignments]
    loaded = load_or_report(args)
    if loaded is None:
        raise CommandError("the settings of the object store are invalid", BAD_SETTINGS)
    return loaded.broker


def with_bucket(settings: "BrokerConfig", work: "Callable[[Tier], Awaitable[T]]") -> T:
    """Open the bucket, have `work` done with it, close it.

    Raises:
        CommandError: The store refuses, does not answer, or is a directory that does not exist: a
            broker makes one, a command reads what a broker has made.
    """
    from broker.remote.tier_settings import tier_home, tier_settings
    from storage.environment.local_filesystem import LocalFilesystem

    home = tier_home(settings, LocalFilesystem())
    opened = tier_settings(settings, home)
    if opened.store.root and not os.path.isdir(opened.store.root):
        raise CommandError(f"object store: there is no directory {opened.store.root}")
    return asyncio.run(_with_bucket(opened, work))


async def _with_bucket(settings: "TierConfig", work: "Callable[[Tier], Awaitable[T]]") -> T:
    from storage.errors import StorageError
    from tiered.errors import TieredError
    from tiered.worker.assembly import build_tier

    try:
        tier = build_tier(settings)
        try:
            return await work(tier)
        finally:
            await tier.close()
    except (TieredError, StorageError) as error:
        raise CommandError(f"object store: {error}") from error
