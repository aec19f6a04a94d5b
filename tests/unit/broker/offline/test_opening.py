"""Opening of a cluster's store for a command: it must answer now."""

import pytest

from bench.node import free_ports
from broker.controller.store.metadata_store import StoreUnavailableError
from broker.offline.opening import cluster_store
from broker.runtime.startup_errors import StartupError
from config.broker import BrokerConfig
from config.listeners import Endpoint
from config.store_address import StoreAddress


async def test_one_that_does_not_answer_is_not_waited_for() -> None:
    (port,) = free_ports(1)
    settings = BrokerConfig().replace(metadata_store=StoreAddress((Endpoint("127.0.0.1", port),)))
    with pytest.raises(StoreUnavailableError):
        async with cluster_store(settings):
            pytest.fail("it does not answer")


async def test_a_file_that_is_missing_is_named() -> None:
    settings = BrokerConfig().replace(
        metadata_store=StoreAddress((Endpoint("127.0.0.1", 1),)),
        metadata_store_password_file="/no/such/file",
    )
    with pytest.raises(StartupError, match=r"metadata\.store\.password\.file"):
        async with cluster_store(settings):
            pytest.fail("its password cannot be read")
