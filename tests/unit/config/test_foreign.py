"""Kafka's settings that are none of ours are told apart by whether leaving them out misleads."""

import pytest

from config.broker import BROKER_KEYS
from config.foreign import is_passed_over, is_refused


@pytest.mark.parametrize(
    "name",
    [
        "process.roles",
        "controller.quorum.voters",
        "controller.quorum.bootstrap.servers",
        "controller.listener.names",
        "metadata.log.segment.bytes",
        "metric.reporters",
        "group.streams.session.timeout.ms",
        "group.share.persister.class.name",
        "group.share.enable",
        "zookeeper.session.timeout.ms",
        "inter.broker.protocol.version",
        "rlmm.config.remote.log.metadata.common.client.bootstrap.servers",
        "rsm.config.fetch.chunk.cache.class",
        "rsm.config.fetch.manifest.cache.size",
        "rsm.config.custom.metadata.fields.include",
    ],
)
def test_quorum_and_java_settings_are_passed_over(name: str) -> None:
    """Existing compose files start."""
    assert is_passed_over(name, "anything")
    assert not is_refused(name)


@pytest.mark.parametrize("name", ["metadata.log.dir", "zookeeper.connect"])
def test_where_kafka_keeps_its_settings_is_not_passed_over(name: str) -> None:
    """A start on Kafka's directories looks there, or says that it cannot."""
    assert not is_passed_over(name, "anything")
    assert name in BROKER_KEYS


@pytest.mark.parametrize(
    "name",
    [
        "ssl.keystore.location",
        "sasl.enabled.mechanisms",
        "listener.name.external.ssl.key.password",
        "authorizer.class.name",
        "super.users",
        "rsm.config.storage.gcs.bucket.name",
        "rsm.config.storage.azure.account.key",
        "rsm.config.storage.proxy.host",
        "rsm.config.iceberg.namespace",
        "rsm.config.storage.aws.credentials.provider.class",
        "create.topic.policy.class.name",
        "client.quota.callback.class",
    ],
)
def test_what_would_silently_not_be_done_is_refused(name: str) -> None:
    """A broker that looks secured and is not is worse than one that does not start."""
    assert is_refused(name)
    assert not is_passed_over(name, "anything")


def test_a_refused_setting_may_say_what_we_do_anyway() -> None:
    """PLAINTEXT between brokers, segments as Kafka writes them, certificates that are checked."""
    assert is_passed_over("security.inter.broker.protocol", "plaintext")
    assert not is_passed_over("security.inter.broker.protocol", "SSL")
    assert is_passed_over("rsm.config.segment.format", " Kafka")
    assert not is_passed_over("rsm.config.segment.format", "iceberg")
    assert is_passed_over("rsm.config.storage.aws.certificate.check.enabled", "true")
    assert not is_passed_over("rsm.config.storage.aws.certificate.check.enabled", "")
    assert not is_passed_over("rsm.config.storage.aws.certificate.check.enabled", "false")
