"""Settings arrive as they left."""

import json
from types import MappingProxyType

import pytest

from tiered.settings import FormatSettings, KeyPairFiles, StoreSettings, TierSettings
from tiered.worker.settings_codec import settings_as_json, settings_from_json


def test_all_of_it_crosses() -> None:
    settings = TierSettings(
        store=StoreSettings(backend="s3", bucket="b", secret_access_key="secret"),
        format=FormatSettings(
            encryption=True,
            key_pair_id="a",
            key_pairs=MappingProxyType(
                {"a": KeyPairFiles("/a.pub", "/a"), "b": KeyPairFiles("/b.pub", None)}
            ),
        ),
        worker_affinity=(1, 3),
        copy_paused=True,
    )
    assert settings_from_json(json.loads(json.dumps(settings_as_json(settings)))) == settings


def test_defaults_cross() -> None:
    assert settings_from_json(json.loads(json.dumps(settings_as_json(TierSettings())))) == (
        TierSettings()
    )


@pytest.mark.parametrize("bad", [{}, {"store": None}, {"store": {}, "format": {}}])
def test_other_json_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, AttributeError)):
        settings_from_json(bad)
