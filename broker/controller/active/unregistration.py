"""A broker that is gone for good: its registration is deleted (UnregisterBroker, KIP-631).

    no such registration   BROKER_ID_NOT_REGISTERED
    it is not fenced       INVALID_REQUEST: it takes part, and would have to be stopped first

Its replicas stay where they are assigned, but out of ISRs and ELRs: a broker that takes its id
later has none of their records.
"""

from broker.controller.images.broker_records import broker_key, fence_key, offline_key
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.store.metadata_store import Delete, unchanged_since
from broker.controller.store.store_writer import Unit
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode


def unregistration_of(image: ClusterImage, node_id: int) -> Unit:
    """What to commit; refused if the broker has registered again meanwhile.

    Raises:
        ApiError: See the module.
    """
    broker = image.brokers.get(node_id)
    if broker is None:
        raise ApiError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"Broker ID {node_id} is not currently registered",
        )
    if not broker.is_fenced or broker.is_live:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Broker {node_id} takes part in the cluster; it has to be stopped first",
        )
    key = broker_key(node_id)
    others = (Delete(fence_key(node_id)), Delete(offline_key(node_id)))
    return Unit((unchanged_since(key, broker.epoch),), (Delete(key), *others))
