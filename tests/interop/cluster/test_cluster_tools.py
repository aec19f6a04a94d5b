"""Kafka's own tools on three brokers, one of which is dead for a while."""

import json
import re

import pytest

from bench.cluster.cluster import Cluster
from bench.cluster.replicas import wait_until_equal
from bench.kafka_release import (
    CONFIGS,
    CONSOLE_CONSUMER,
    CONSOLE_PRODUCER,
    CONSUMER_GROUPS,
    LEADER_ELECTION,
    LOG_DIRS,
    TOPICS,
)
from cli.main import main
from tests.interop.tool_server import ToolServer


def leaders(described: str) -> dict[int, int]:
    """Partition to leader, as kafka-topics prints them; -1 for none."""
    found = re.findall(r"Partition: (\d+)\s+Leader: (\d+|none)", described)
    return {int(index): -1 if leader == "none" else int(leader) for index, leader in found}


def test_tools_work_by_any_broker_while_one_is_dead(
    cluster: Cluster, topic: str, kafka_tools: ToolServer
) -> None:
    """kafka-topics, console producer and consumer, kafka-consumer-groups, kafka-log-dirs."""
    first, second, third = (("--bootstrap-server", address) for address in cluster.addresses)
    kafka_tools.tool(TOPICS, *first, "--create", "--topic", topic, "--partitions", "3")
    # The broker that was asked has it; another one's image may be older.
    cluster.wait_until_in_sync([topic], partitions=3)
    described = kafka_tools.tool(TOPICS, *second, "--describe", "--topic", topic).stdout
    assert "ReplicationFactor: 3" in described
    assert sorted(leaders(described).values()) == [1, 2, 3]

    # With keys, so that each partition has records: a consumer that ends with the last of 100 may
    # not know its position in an empty partition yet, and then commits none there.
    keyed = (*third, "--topic", topic, "--reader-property", "parse.key=true")
    lines = [f"line {number}" for number in range(100)]
    text = "".join(f"{line}\t{line}\n" for line in lines[:50])
    kafka_tools.tool(CONSOLE_PRODUCER, *keyed, text=text)
    cluster.kill(1)
    cluster.wait_until(
        "broker 1 leads nothing, and is in no ISR",
        lambda: all(
            one.leader in {2, 3} and 1 not in one.isr
            for node in cluster.answering
            for one in cluster.state_at(node, [topic]).partitions
        ),
    )
    troubled = kafka_tools.tool(
        TOPICS, *second, "--describe", "--topic", topic, "--under-replicated-partitions"
    ).stdout
    assert sorted(leaders(troubled)) == [0, 1, 2]
    text = "".join(f"{line}\t{line}\n" for line in lines[50:])
    kafka_tools.tool(CONSOLE_PRODUCER, *keyed, text=text)

    cluster.heal()
    cluster.wait_for_all()
    cluster.wait_until_in_sync([topic])
    group = f"{topic}-group"
    consumed = kafka_tools.tool(
        CONSOLE_CONSUMER,
        *(*first, "--topic", topic, "--from-beginning", "--group", group),
        *("--max-messages", "100", "--timeout-ms", "60000"),
    ).stdout
    assert sorted(consumed.splitlines()) == sorted(lines)
    shown = kafka_tools.tool(CONSUMER_GROUPS, *second, "--describe", "--group", group).stdout
    rows = [line.split() for line in shown.splitlines() if topic in line]
    assert [row[5] for row in rows] == ["0"] * 3, shown
    assert all(int(row[3]) > 0 for row in rows), shown

    answer = kafka_tools.tool(LOG_DIRS, *third, "--describe", "--topic-list", topic).stdout
    document = json.loads(answer.splitlines()[-1])
    sizes = {
        broker["broker"]: sum(
            partition["size"]
            for directory in broker["logDirs"]
            for partition in directory["partitions"]
        )
        for broker in document["brokers"]
    }
    assert sorted(sizes) == [1, 2, 3]
    wait_until_equal(cluster, topic, 3)


def test_preferred_leaders_come_back(cluster: Cluster, topic: str, kafka_tools: ToolServer) -> None:
    """kafka-leader-election gives a broker that was dead its partition again."""
    cluster.create_topic(topic, [[1, 2, 3]])
    cluster.kill(1)
    cluster.wait_until("another leader", lambda: cluster.leader_of(topic) in {2, 3})
    cluster.heal()
    cluster.wait_for_all()
    cluster.wait_until_in_sync([topic])
    assert cluster.leader_of(topic) in {2, 3}
    elected = kafka_tools.tool(
        LEADER_ELECTION,
        *("--bootstrap-server", cluster.addresses[1], "--election-type", "preferred"),
        *("--topic", topic, "--partition", "0"),
    ).stdout
    assert f"{topic}-0" in elected
    cluster.wait_until("the preferred leader", lambda: cluster.leader_of(topic) == 1)


def lose_all_in_sync(cluster: Cluster, topic: str) -> None:
    """One replica was in sync, and is away; the others live, and may not lead."""
    cluster.create_topic(topic, [[1, 2, 3]], {"min.insync.replicas": "1"})
    for node_id in (2, 3):
        cluster.kill(node_id)
    cluster.wait_until("broker 1 is in sync alone", lambda: is_alone(cluster, topic))
    cluster.kill(1)
    for node_id in (2, 3):
        cluster.restart(node_id)
    cluster.wait_until("nobody leads", lambda: cluster.leader_of(topic) == -1)


def is_alone(cluster: Cluster, topic: str) -> bool:
    partition = cluster.state([topic]).partition(topic, 0)
    return partition is not None and list(partition.isr) == [1]


def test_an_unclean_election_is_held_by_the_tool(
    cluster: Cluster, topic: str, kafka_tools: ToolServer
) -> None:
    """kafka-leader-election --election-type unclean; a preferred one finds nobody that may lead."""
    lose_all_in_sync(cluster, topic)
    asked = ("--bootstrap-server", cluster.addresses[1], "--topic", topic, "--partition", "0")
    refused = kafka_tools.tool(LEADER_ELECTION, *asked, "--election-type", "preferred", check=False)
    assert refused.returncode != 0
    assert "PreferredLeaderNotAvailable" in refused.stdout + refused.stderr
    assert cluster.leader_of(topic) == -1
    elected = kafka_tools.tool(LEADER_ELECTION, *asked, "--election-type", "unclean").stdout
    assert f"Successfully completed leader election (UNCLEAN) for partitions {topic}-0" in elected
    cluster.wait_until("a leader", lambda: cluster.leader_of(topic) in {2, 3})
    again = kafka_tools.tool(LEADER_ELECTION, *asked, "--election-type", "unclean").stdout
    assert "Valid replica already elected" in again
    cluster.heal()
    cluster.wait_until_in_sync([topic])
    wait_until_equal(cluster, topic, 1)


def test_an_unclean_election_is_held_when_the_topic_allows_it(
    cluster: Cluster, topic: str, kafka_tools: ToolServer
) -> None:
    """kafka-configs; at once, where Kafka's controller looks every five minutes."""
    lose_all_in_sync(cluster, topic)
    kafka_tools.tool(
        CONFIGS,
        *("--bootstrap-server", cluster.addresses[1], "--alter", "--topic", topic),
        *("--add-config", "unclean.leader.election.enable=true"),
    )
    cluster.wait_until("a leader", lambda: cluster.leader_of(topic) in {2, 3})
    cluster.heal()
    cluster.wait_until_in_sync([topic])


def test_commands_go_on_while_metadata_names_a_dead_broker(
    cluster: Cluster, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any broker may be asked first, and all of them for sizes: those that serve have it all."""
    cluster.create_topic(topic, [(1, 2, 3)])
    cluster.kill(1)
    cluster.wait_until(
        "broker 1 is in no ISR",
        lambda: all(
            1 not in one.isr
            for node in cluster.answering
            for one in cluster.state_at(node, [topic]).partitions
        ),
    )
    commands = (["cluster", "describe"], ["topics", "describe", topic], ["transactions", "list"])
    for words in commands * 4:
        assert main([*words, "--bootstrap-server", cluster.bootstrap]) == 0, capsys.readouterr()
    cluster.heal()
