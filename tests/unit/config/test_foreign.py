"""Kafka's settings that are none of ours are told apart by whether leaving them out misleads."""

import pytest

from config.foreign import is_passed_over, is_refused


@pytest.mark.parametrize(
    "name",
    [
        "process.roles",
        "controller.quorum.voters",
        "controller.quorum.bootstrap.servers",
        "controller.listener.names",
        "metadata.log.dir",
        "broker.session.timeout.ms",
        "metric.reporters",
        "share.coordinator.state.topic.min.isr",
        "group.share.enable",
        "zookeeper.connect",
        "inter.broker.protocol.version",
    ],
)
def test_quorum_and_java_settings_are_passed_over(name: str) -> None:
    """Existing compose files start."""
    assert is_passed_over(name, "anything")
    assert not is_refused(name)


@pytest.mark.parametrize(
    "name",
    [
        "ssl.keystore.location",
        "sasl.enabled.mechanisms",
        "listener.name.external.ssl.key.password",
        "authorizer.class.name",
        "super.users",
        "remote.log.storage.system.enable",
        "rsm.config.chunk.size",
        "create.topic.policy.class.name",
        "client.quota.callback.class",
    ],
)
def test_what_would_silently_not_be_done_is_refused(name: str) -> None:
    """A broker that looks secured and is not is worse than one that does not start."""
    assert is_refused(name)
    assert not is_passed_over(name, "anything")


def test_a_refused_setting_may_say_what_we_do_anyway() -> None:
    """PLAINTEXT between brokers, no remote storage."""
    assert is_passed_over("security.inter.broker.protocol", "plaintext")
    assert not is_passed_over("security.inter.broker.protocol", "SSL")
    assert is_passed_over("remote.log.storage.system.enable", " false")
    assert not is_passed_over("remote.log.storage.system.enable", "")
    assert not is_passed_over("remote.log.storage.system.enable", "true")
