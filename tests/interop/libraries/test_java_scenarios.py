"""Transactions, groups and their administration with the released Java client.

The scenarios are in `java/`; each says itself what has to be so.
"""

from collections.abc import Callable, Iterator

import pytest

from bench.kafka_release import KAFKA_VERSION, KafkaRelease
from bench.node import OwnedNode
from tests.interop.java_programs import JavaScenarios

SCENARIOS = [
    "regular_expression_follows_topics",  # waits for the broker's next look, so it begins first
    "admin_aborts_a_transaction",
    "admin_configures_groups",
    "admin_deletes_groups_classic",
    "admin_deletes_groups_consumer",
    "admin_describes_and_lists_groups",
    "admin_describes_features",
    "admin_fences_producers",
    "admin_handles_offsets",
    "admin_looks_at_transactions",
    "admin_removes_members",
    "admin_terminates_a_transaction",
    "bad_regular_expression",
    "commit_and_abort",
    "consume_transform_produce_classic",
    "consume_transform_produce_consumer",
    "consumer_protocol_moves_only_what_must",
    "cooperative_sticky_moves_only_what_must",
    "failed_transaction_is_aborted_and_repeated",
    "instance_id_twice_classic",
    "instance_id_twice_consumer",
    "many_partitions_in_one_transaction",
    "members_share_and_take_over_classic",
    "members_share_and_take_over_consumer",
    "members_share_with_range_of_the_broker",
    "migration_there_and_back",
    "read_committed_waits_for_open_transactions",
    "static_member_returns_without_rebalance_classic",
    "static_member_returns_without_rebalance_consumer",
    "topic_grows_under_a_group_classic",
    "topic_grows_under_a_group_consumer",
    "transaction_times_out",
    "zombie_group_member_is_fenced_classic",
    "zombie_group_member_is_fenced_consumer",
    "zombie_producer_is_fenced",
]

ALONE = "transactions_survive_a_change_of_version"
"""Changes the cluster under all others, so it runs when they are done."""


@pytest.fixture(scope="module")
def java(
    coordinators: OwnedNode,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[JavaScenarios]:
    """All scenarios that are asked for in this run, started."""
    scenarios = JavaScenarios(
        KafkaRelease.resolve(), coordinators.address, tmp_path_factory.mktemp("java")
    )
    asked = {item.name for item in request.session.items}
    scenarios.start(*(name for name in SCENARIOS if f"test_scenario[{name}]" in asked))
    yield scenarios
    scenarios.close()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(java: JavaScenarios, ran: Callable[[str], None], scenario: str) -> None:
    ran(f"Java client and tools {KAFKA_VERSION}")
    java.finish(scenario)


def test_scenario_that_must_be_alone(java: JavaScenarios) -> None:
    java.start(ALONE)
    java.finish(ALONE)


def test_all_scenarios_are_listed(java: JavaScenarios) -> None:
    assert java.names() == sorted([*SCENARIOS, ALONE])
