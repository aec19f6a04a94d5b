"""Kafka's settings that are none of ours: some are passed over, others must not be.

Passed over are those whose absence changes nothing a client could rely on: KRaft's quorum (our
cluster state lives in a metadata store), the Java machinery, tuning of what is not there yet, and
of remote storage what we do in another way. Refused are those that ask for something we would
silently not do, above all security, and object stores that we cannot reach.
"""

import re

_PASSED_OVER = re.compile(
    r"process\.roles|controller\..*|early\.start\.listeners|initial\.broker\.registration\.timeout\.ms"
    r"|metadata\.(log|max)\.(?!dir$).*"
    r"|server\.max\.startup\.time\.ms|unstable\..*|internal\..*"
    # The Java machinery: metrics are scraped from the admin port instead.
    r"|metric\.reporters|metrics\..*|kafka\.metrics\..*|auto\.include\.jmx\.reporter"
    # Features to come: streams groups, quotas, client telemetry.
    r"|group\.streams\..*"
    # Internal to Kafka: share groups are switched on by a feature, and have one persister.
    r"|group\.share\.(enable|persister\.class\.name)"
    r"|add\.partitions\.to\.txn\..*"
    r"|(alter\.log\.dirs\.replication\.|replication\.|controller\.)?quota\.window\..*"
    r"|telemetry\..*|socket\.connection\.setup\..*|unclean\.leader\.election\.interval\.ms"
    r"|connection\.failed\.authentication\.delay\.ms"
    # Removed from Kafka, still in many files.
    r"|log\.message\.(format\.version|downconversion\.enable|timestamp\.difference\.max\.ms)"
    r"|inter\.broker\.protocol\.version|zookeeper\.(?!connect$).*|reserved\.broker\.max\.id"
    r"|broker\.id\.generation\.enable|offsets\.commit\.required\.acks"
    # Of Kafka's metadata manager: it is a client of its own broker, which we are not.
    r"|rlmm\.config\.remote\.log\.metadata\.(common\.client|producer|consumer)\..*|rlmm\.config\.log\.dir"
    r"|rlmm\.config\.(broker\.id|cluster\.id)"
    # Of Aiven's plugin: caches that we have others for, its own metrics, checks always done.
    r"|rsm\.config\.fetch\.(manifest|indexes)\.cache\..*|rsm\.config\.metrics\..*"
    r"|rsm\.config\.fetch\.chunk\.cache\.(class|retention\.ms|get\.timeout\.ms|thread\.pool\.size)"
    r"|rsm\.config\.(key\.prefix\.mask|custom\.metadata\.fields\.include|storage\.overwrite\.enabled)"
    r"|rsm\.config\.storage\.aws\.checksum\.check\.enabled"
)

_REFUSED = re.compile(
    r"(listener\.name\..*\.)?(ssl|sasl)\..*|authorizer\.class\.name|super\.users"
    r"|allow\.everyone\.if\.no\.acl\.found|principal\.builder\.class|delegation\.token\..*"
    r"|connections\.max\.reauth\.ms|security\.providers|security\.inter\.broker\.protocol"
    r"|listener\.name\..*|config\.providers(\..*)?|create\.topic\.policy\.class\.name"
    r"|alter\.config\.policy\.class\.name|client\.quota\.callback\.class"
    # What Varve does not know of a storage plugin's settings: other stores, proxies, formats.
    r"|rsm\.config\..*|rlmm\.config\..*"
)

_FIXED = re.compile(
    r"process\.roles|controller\..*|early\.start\.listeners|initial\.broker\.registration\.timeout\.ms"
    r"|metadata\.(log|max)\..*|metrics\..*|kafka\.metrics\..*|group\.streams\..*"
    r"|add\.partitions\.to\.txn\..*|(alter\.log\.dirs\.replication\.)?quota\.window\..*"
    r"|telemetry\..*|socket\.connection\.setup\..*|connection\.failed\.authentication\.delay\.ms"
)
"""Of those passed over, what Kafka 4.2 reads at a start only."""

_HARMLESS_VALUES = {
    "security.inter.broker.protocol": "PLAINTEXT",
    "rsm.config.segment.format": "kafka",
    "rsm.config.storage.aws.certificate.check.enabled": "true",
}
"""Refused settings whose one value says what we do anyway."""

_PLUGINS = ("rsm.", "rlmm.")
"""Kafka hands these to a plugin at its start, and knows nothing of them at run time."""

METRIC_REPORTERS = "metric.reporters"

_REPORTER = "org.apache.kafka.common.metrics.JmxReporter"
"""Kafka's default: metrics are there to be scraped, as ours are."""


def is_passed_over(name: str, value: str) -> bool:
    """Whether the setting may be left out with a warning."""
    if _PASSED_OVER.fullmatch(name):
        return True
    return _HARMLESS_VALUES.get(name, "").lower() == value.strip().lower() != ""


def is_refused(name: str) -> bool:
    """Whether Kafka has the setting and leaving it out would mislead."""
    return _REFUSED.fullmatch(name) is not None and _PASSED_OVER.fullmatch(name) is None


def is_fixed(name: str) -> bool:
    """Whether Kafka has the setting, passed over here, and changes it at no run time either."""
    return _FIXED.fullmatch(name) is not None


def is_refused_at_run_time(name: str, value: str) -> bool:
    """Whether the setting, made while brokers run, would be relied on and not be done."""
    if name == METRIC_REPORTERS:
        classes = {text.strip() for text in value.split(",")}
        return bool(classes - {"", _REPORTER})
    if name.startswith(_PLUGINS) or is_passed_over(name, value):
        return False
    return is_refused(name)
