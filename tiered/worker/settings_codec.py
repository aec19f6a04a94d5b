"""`TierSettings` as JSON: how the tier process is told its settings, secrets among them.

They cross the socket only. A command line or an environment can be read by others.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from tiered.settings import FormatSettings, KeyPairFiles, StoreSettings, TierSettings


def settings_as_json(settings: TierSettings) -> dict[str, Any]:
    """For the broker's hello."""
    # The copy that `asdict` makes of a mapping needs a dict.
    plain = replace(settings.format, key_pairs=dict(settings.format.key_pairs))
    return asdict(replace(settings, format=plain))


def settings_from_json(fields: Mapping[str, Any]) -> TierSettings:
    """What `settings_as_json` wrote.

    Raises:
        KeyError, TypeError, AttributeError: It is something else.
    """
    rest = dict(fields)
    store = StoreSettings(**rest.pop("store"))
    described = dict(rest.pop("format"))
    pairs = {name: KeyPairFiles(**pair) for name, pair in described.pop("key_pairs").items()}
    affinity = tuple(rest.pop("worker_affinity"))
    return TierSettings(
        store=store,
        format=FormatSettings(key_pairs=pairs, **described),
        worker_affinity=affinity,
        **rest,
    )
