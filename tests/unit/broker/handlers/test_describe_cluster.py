"""DescribeCluster, in every version."""

import pytest

from broker.controller.images.cluster_image import BrokerEndpoint
from broker.handlers import describe_cluster
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.messages.describe_cluster import DescribeClusterRequest
from tests.fakes.broker.controller import CLUSTER_ID, open_controller, services_of
from tests.fakes.broker.wire import call, versions_of

VERSIONS = versions_of(describe_cluster)


@pytest.mark.parametrize("version", VERSIONS)
async def test_brokers_and_ids(version: int) -> None:
    controller = await open_controller(broker_rack="r1")
    services = services_of(controller)
    response = await call(describe_cluster, services, DescribeClusterRequest(), version)
    assert (response.error_code, response.cluster_id, response.controller_id) == (0, CLUSTER_ID, 1)
    (broker,) = response.brokers
    assert (broker.broker_id, broker.host, broker.port, broker.rack) == (
        1,
        "broker.example",
        9092,
        "r1",
    )
    assert not broker.is_fenced
    assert response.cluster_authorized_operations == -(2**31)
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    asked = await call(describe_cluster, services, request, version)
    assert asked.cluster_authorized_operations == 8096


async def test_while_the_metadata_store_is_away_no_controller_is_named() -> None:
    """It could elect nobody; Metadata, by which clients find it, goes on to name it."""
    services = services_of(await open_controller())
    services.store_is_away = lambda: True
    response = await call(describe_cluster, services, DescribeClusterRequest(), 2)
    assert response.controller_id == -1
    assert [broker.broker_id for broker in response.brokers] == [1]


async def test_endpoints_are_those_of_the_clients_listener() -> None:
    controller = await open_controller()
    controller.advertise({"A": BrokerEndpoint("a", 1), "B": BrokerEndpoint("b", 2)})
    for listener, hosts in (("A", ["a"]), ("B", ["b"]), ("C", [])):
        response = await call(
            describe_cluster,
            services_of(controller),
            DescribeClusterRequest(),
            2,
            listener=listener,
        )
        assert [broker.host for broker in response.brokers] == hosts


@pytest.mark.parametrize(
    ("kind", "error"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
async def test_controllers_are_not_to_be_had_here(kind: int, error: ErrorCode) -> None:
    controller = await open_controller()
    request = DescribeClusterRequest(endpoint_type=kind)
    with pytest.raises(ApiError) as caught:
        await call(describe_cluster, services_of(controller), request, 1)
    assert caught.value.code is error
