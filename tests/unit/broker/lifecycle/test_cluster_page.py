"""What an operator reads of brokers, fences and leases."""

import json
import math
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

import pytest

from broker.controller.images.broker_records import (
    BrokerRegistration,
    LastRun,
    broker_key,
    draining_key,
    encode_controller,
    encode_draining,
    encode_fence,
    encode_live,
    encode_registration,
    encode_suspicion,
    fence_key,
    live_key,
    suspicion_key,
)
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.metadata_records import CONTROLLER_KEY
from broker.controller.store.metadata_store import KeyValue
from broker.lifecycle.cluster_page import ClusterPage
from broker.membership.membership import Membership
from broker.membership.validity import Validity
from tests.fakes.clock import ManualClock

INCARNATION = UUID(int=7)


@dataclass
class Member:
    """A membership as far as the page looks."""

    validity: Validity
    broker_epoch: int = 10


async def asked(image: ClusterImage | None, until_ms: float) -> tuple[int, dict[str, Any]]:
    """Status and document of the page; `until_ms` counts from now."""
    clock = ManualClock()
    member = cast("Membership", Member(Validity(clock.monotonic_ms() + until_ms)))
    page = await ClusterPage(2, lambda: image, lambda: member, clock).cluster({})
    return page.status, json.loads(page.body)


def image_of_two() -> ClusterImage:
    """Broker 2 is let in and draining, 3 fenced and suspected by 2."""
    registration = BrokerRegistration(INCARNATION, {}, release="1.0", ended=LastRun.SAME_BOOT)
    values = {
        broker_key(2): (encode_registration(registration), 10),
        live_key(2): (encode_live(INCARNATION), 10),
        fence_key(2): (encode_fence(10), 11),
        draining_key(2): (encode_draining(10), 12),
        broker_key(3): (encode_registration(registration), 13),
        fence_key(3): (encode_fence(0, "its session has ended"), 14),
        suspicion_key(3, 2): (encode_suspicion(13), 15),
        CONTROLLER_KEY: (encode_controller(2, 10), 16),
    }
    items = [KeyValue(key, value, rev, rev, 1) for key, (value, rev) in values.items()]
    return ClusterImage.loaded(items, 20)


async def test_epochs_fences_and_their_reasons() -> None:
    status, document = await asked(image_of_two(), 2345.6)
    assert status == 200
    assert (document["node_id"], document["broker_epoch"]) == (2, 10)
    assert document["lease_left_ms"] == 2345
    assert (document["controller_id"], document["controller_epoch"]) == (2, 16)
    assert document["image_revision"] == 20
    second, third = document["brokers"]
    assert (second["epoch"], second["fenced"], second["why"]) == (10, False, "")
    assert (second["live"], second["draining"], second["last_run"]) == (True, True, "same-boot")
    assert (third["epoch"], third["fenced"], third["why"]) == (13, True, "its session has ended")
    assert (third["live"], third["suspected_by"], third["release"]) == (False, [2], "1.0")


@pytest.mark.parametrize(
    ("until_ms", "left_ms"), [(math.inf, None), (-math.inf, 0), (-5.0, 0), (0.5, 0)]
)
async def test_a_lease_that_does_not_end_is_null(until_ms: float, left_ms: int | None) -> None:
    """One that has ended has nothing left."""
    _, document = await asked(image_of_two(), until_ms)
    assert document["lease_left_ms"] == left_ms


async def test_before_there_is_an_image() -> None:
    status, document = await asked(None, 0)
    assert (status, document) == (503, {"error": "the broker is starting"})
