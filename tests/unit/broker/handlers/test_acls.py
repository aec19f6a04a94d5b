"""DescribeAcls, CreateAcls, DeleteAcls: there is no authorizer."""

import pytest

from broker.handlers import create_acls, delete_acls, describe_acls
from protocol.error_codes import ErrorCode
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.messages.describe_acls import DescribeAclsRequest
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_acls_are_disabled_as_in_kafka_without_an_authorizer(version: int) -> None:
    """MirrorMaker takes exactly this error for a cluster without ACLs."""
    services = services_of(await open_controller())

    described = await call(describe_acls, services, DescribeAclsRequest(), version)
    create = CreateAclsRequest(creations=[AclCreation(), AclCreation()])
    created = await call(create_acls, services, create, version)
    delete = DeleteAclsRequest(filters=[DeleteAclsFilter(), DeleteAclsFilter()])
    deleted = await call(delete_acls, services, delete, version)

    answers = [described, *created.results, *deleted.filter_results]
    assert [answer.error_code for answer in answers] == 5 * [ErrorCode.SECURITY_DISABLED]
    assert described.error_message == "No Authorizer is configured on the broker"
    assert {answer.error_message for answer in answers[1:]} == {"No Authorizer is configured."}
    assert described.resources == []
