"""Kafka's error codes.

A code travels as an int16; the sentence beside it is for people and never for programs. Retriable
means: the same request may succeed later, and clients do try again by themselves (most of them
after refreshing their metadata).

Source: Kafka 4.2, Errors.java, for numbers, names and which errors are retriable.
"""

from enum import IntEnum


class ErrorCode(IntEnum):
    """Error codes of the protocol, -1 to 133.

    Attributes:
        retriable: Whether a client may repeat the request unchanged.
        message: One sentence for people.
    """

    retriable: bool
    message: str

    def __new__(cls, code: int, retriable: bool, message: str) -> "ErrorCode":
        """Make a member whose value is its number alone."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.message = message
        return member

    UNKNOWN_SERVER_ERROR = (-1, False, "The broker met an error it did not expect.")
    NONE = (0, False, "No error.")
    OFFSET_OUT_OF_RANGE = (1, False, "The offset is outside the range this partition holds.")
    CORRUPT_MESSAGE = (
        2,
        True,
        "The record data is damaged: checksum, size or structure do not hold.",
    )
    UNKNOWN_TOPIC_OR_PARTITION = (3, True, "This broker does not host the topic or partition.")
    INVALID_FETCH_SIZE = (4, False, "The fetch size is not usable.")
    LEADER_NOT_AVAILABLE = (5, True, "The partition has no leader at the moment.")
    NOT_LEADER_OR_FOLLOWER = (
        6,
        True,
        "This broker is not the leader, or not a replica, of the partition.",
    )
    REQUEST_TIMED_OUT = (7, True, "The request was not finished within its time limit.")
    BROKER_NOT_AVAILABLE = (8, False, "The broker is not available.")
    REPLICA_NOT_AVAILABLE = (9, True, "The replica is not available for this partition.")
    MESSAGE_TOO_LARGE = (10, False, "A record batch is larger than this topic or broker accepts.")
    STALE_CONTROLLER_EPOCH = (11, False, "The controller epoch is older than the current one.")
    OFFSET_METADATA_TOO_LARGE = (12, False, "The metadata string of an offset commit is too long.")
    NETWORK_EXCEPTION = (13, True, "The connection broke before an answer arrived.")
    COORDINATOR_LOAD_IN_PROGRESS = (14, True, "The coordinator is still loading its state.")
    COORDINATOR_NOT_AVAILABLE = (15, True, "The coordinator is not available.")
    NOT_COORDINATOR = (16, True, "This broker does not coordinate that group or transaction.")
    INVALID_TOPIC_EXCEPTION = (17, False, "The topic name is not legal.")
    RECORD_LIST_TOO_LARGE = (
        18,
        False,
        "The batches of one append are together larger than a segment.",
    )
    NOT_ENOUGH_REPLICAS = (19, True, "Too few replicas are in sync to accept the write.")
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        True,
        "The records were written, but too few replicas were in sync.",
    )
    INVALID_REQUIRED_ACKS = (21, False, "Required acks must be -1, 0 or 1.")
    ILLEGAL_GENERATION = (22, False, "The generation is not the current one of the group.")
    INCONSISTENT_GROUP_PROTOCOL = (
        23,
        False,
        "The member shares no assignment protocol with the group.",
    )
    INVALID_GROUP_ID = (24, False, "The group id is not legal.")
    UNKNOWN_MEMBER_ID = (25, False, "The group does not know this member.")
    INVALID_SESSION_TIMEOUT = (
        26,
        False,
        "The session timeout is outside the bounds the broker allows.",
    )
    REBALANCE_IN_PROGRESS = (27, False, "The group is rebalancing; the member should join again.")
    INVALID_COMMIT_OFFSET_SIZE = (28, False, "The offset commit does not fit into one record.")
    TOPIC_AUTHORIZATION_FAILED = (29, False, "The client may not access the topic.")
    GROUP_AUTHORIZATION_FAILED = (30, False, "The client may not access the group.")
    CLUSTER_AUTHORIZATION_FAILED = (31, False, "The client may not act on the cluster.")
    INVALID_TIMESTAMP = (32, False, "A record's timestamp is outside the bounds of its topic.")
    UNSUPPORTED_SASL_MECHANISM = (33, False, "The SASL mechanism is not enabled here.")
    ILLEGAL_SASL_STATE = (34, False, "The request does not fit the state of the SASL exchange.")
    UNSUPPORTED_VERSION = (35, False, "This version of the API is not supported.")
    TOPIC_ALREADY_EXISTS = (36, False, "A topic of that name exists already.")
    INVALID_PARTITIONS = (37, False, "The number of partitions is not legal.")
    INVALID_REPLICATION_FACTOR = (
        38,
        False,
        "The replication factor is not legal or larger than the number of brokers.",
    )
    INVALID_REPLICA_ASSIGNMENT = (39, False, "The replica assignment is not legal.")
    INVALID_CONFIG = (40, False, "A configuration is not legal.")
    NOT_CONTROLLER = (41, True, "This broker is not the controller.")
    INVALID_REQUEST = (42, False, "The request contradicts itself or lacks something.")
    UNSUPPORTED_FOR_MESSAGE_FORMAT = (
        43,
        False,
        "The message format in use does not support the operation.",
    )
    POLICY_VIOLATION = (44, False, "A policy of this cluster forbids the request.")
    OUT_OF_ORDER_SEQUENCE_NUMBER = (
        45,
        False,
        "The sequence number is not the one expected from this producer.",
    )
    DUPLICATE_SEQUENCE_NUMBER = (46, False, "The sequence number was seen before.")
    INVALID_PRODUCER_EPOCH = (47, False, "A newer producer with the same id has taken over.")
    INVALID_TXN_STATE = (
        48,
        False,
        "The transaction is in a state that does not allow the operation.",
    )
    INVALID_PRODUCER_ID_MAPPING = (
        49,
        False,
        "The producer id does not belong to the transactional id.",
    )
    INVALID_TRANSACTION_TIMEOUT = (
        50,
        False,
        "The transaction timeout is larger than the broker allows.",
    )
    CONCURRENT_TRANSACTIONS = (
        51,
        True,
        "Another operation on the same transaction is still running.",
    )
    TRANSACTION_COORDINATOR_FENCED = (52, False, "A newer transaction coordinator has taken over.")
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (
        53,
        False,
        "The client may not use the transactional id.",
    )
    SECURITY_DISABLED = (54, False, "Security features are switched off.")
    OPERATION_NOT_ATTEMPTED = (
        55,
        False,
        "The operation was not tried, because another part of the request failed.",
    )
    KAFKA_STORAGE_ERROR = (56, True, "The disk failed while the log was read or written.")
    LOG_DIR_NOT_FOUND = (57, False, "The log directory is not one of this broker's.")
    SASL_AUTHENTICATION_FAILED = (58, False, "Authentication failed.")
    UNKNOWN_PRODUCER_ID = (59, False, "The partition has no state of this producer.")
    REASSIGNMENT_IN_PROGRESS = (60, False, "A reassignment of the partition is running.")
    DELEGATION_TOKEN_AUTH_DISABLED = (61, False, "Delegation tokens are switched off.")
    DELEGATION_TOKEN_NOT_FOUND = (62, False, "The delegation token does not exist.")
    DELEGATION_TOKEN_OWNER_MISMATCH = (63, False, "The delegation token belongs to somebody else.")
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (
        64,
        False,
        "Delegation tokens cannot be requested over this kind of connection.",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = (
        65,
        False,
        "The client may not access the delegation token.",
    )
    DELEGATION_TOKEN_EXPIRED = (66, False, "The delegation token has expired.")
    INVALID_PRINCIPAL_TYPE = (67, False, "The principal's type is not supported.")
    NON_EMPTY_GROUP = (68, False, "The group still has members.")
    GROUP_ID_NOT_FOUND = (69, False, "The group does not exist.")
    FETCH_SESSION_ID_NOT_FOUND = (70, True, "The fetch session does not exist any more.")
    INVALID_FETCH_SESSION_EPOCH = (71, True, "The fetch session epoch is not the one expected.")
    LISTENER_NOT_FOUND = (
        72,
        True,
        "The leader has no listener of the name the request came in by.",
    )
    TOPIC_DELETION_DISABLED = (73, False, "Deletion of topics is switched off.")
    FENCED_LEADER_EPOCH = (74, True, "The leader epoch in the request is older than the broker's.")
    UNKNOWN_LEADER_EPOCH = (75, True, "The leader epoch in the request is newer than the broker's.")
    UNSUPPORTED_COMPRESSION_TYPE = (
        76,
        False,
        "The version of the request does not allow this compression.",
    )
    STALE_BROKER_EPOCH = (77, False, "The broker epoch is older than the current one.")
    OFFSET_NOT_AVAILABLE = (
        78,
        True,
        "The new leader does not know yet up to where records are committed.",
    )
    MEMBER_ID_REQUIRED = (79, False, "The member must join again with the member id it was given.")
    PREFERRED_LEADER_NOT_AVAILABLE = (80, True, "The preferred leader is not available.")
    GROUP_MAX_SIZE_REACHED = (81, False, "The group has as many members as it may have.")
    FENCED_INSTANCE_ID = (82, False, "A newer member uses the same static instance id.")
    ELIGIBLE_LEADERS_NOT_AVAILABLE = (83, True, "No replica that may become leader is available.")
    ELECTION_NOT_NEEDED = (84, True, "The partition has the leader that was asked for.")
    NO_REASSIGNMENT_IN_PROGRESS = (85, False, "No reassignment of the partition is running.")
    GROUP_SUBSCRIBED_TO_TOPIC = (86, False, "The group is subscribed to the topic.")
    INVALID_RECORD = (87, False, "A record was refused by validation.")
    UNSTABLE_OFFSET_COMMIT = (88, True, "Offsets wait for the end of an open transaction.")
    THROTTLING_QUOTA_EXCEEDED = (89, True, "A quota is used up.")
    PRODUCER_FENCED = (90, False, "A newer producer with the same transactional id has taken over.")
    RESOURCE_NOT_FOUND = (91, False, "What the request refers to does not exist.")
    DUPLICATE_RESOURCE = (92, False, "What the request would create exists already.")
    UNACCEPTABLE_CREDENTIAL = (93, False, "The credential does not meet the requirements.")
    INCONSISTENT_VOTER_SET = (94, False, "The set of voters is not the one expected.")
    INVALID_UPDATE_VERSION = (95, False, "The feature version is not legal.")
    FEATURE_UPDATE_FAILED = (96, False, "Updating a finalized feature failed.")
    PRINCIPAL_DESERIALIZATION_FAILURE = (97, False, "The forwarded principal cannot be read.")
    SNAPSHOT_NOT_FOUND = (98, False, "The snapshot does not exist.")
    POSITION_OUT_OF_RANGE = (99, False, "The position lies beyond the end of the snapshot.")
    UNKNOWN_TOPIC_ID = (100, True, "No topic has that id.")
    DUPLICATE_BROKER_REGISTRATION = (101, False, "A broker with this id is registered already.")
    BROKER_ID_NOT_REGISTERED = (102, False, "No broker with this id is registered.")
    INCONSISTENT_TOPIC_ID = (103, True, "The topic id is not the one in the log.")
    INCONSISTENT_CLUSTER_ID = (104, False, "The request is meant for another cluster.")
    TRANSACTIONAL_ID_NOT_FOUND = (105, False, "The transactional id does not exist.")
    FETCH_SESSION_TOPIC_ID_ERROR = (
        106,
        True,
        "Names and ids of topics are mixed within one fetch session.",
    )
    INELIGIBLE_REPLICA = (107, False, "The replica may not join the in-sync set.")
    NEW_LEADER_ELECTED = (108, False, "The change made another replica leader.")
    OFFSET_MOVED_TO_TIERED_STORAGE = (109, False, "The offset has moved to remote storage.")
    FENCED_MEMBER_EPOCH = (
        110,
        False,
        "The member epoch is older than the coordinator's; the member must start over.",
    )
    UNRELEASED_INSTANCE_ID = (111, False, "Another member still holds the static instance id.")
    UNSUPPORTED_ASSIGNOR = (112, False, "The group has no assignor of that name.")
    STALE_MEMBER_EPOCH = (
        113,
        False,
        "The member epoch is older than the current one; retry with the new one.",
    )
    MISMATCHED_ENDPOINT_TYPE = (114, False, "The request was sent to the wrong kind of endpoint.")
    UNSUPPORTED_ENDPOINT_TYPE = (115, False, "This kind of endpoint is not supported.")
    UNKNOWN_CONTROLLER_ID = (116, False, "The controller id is not known.")
    UNKNOWN_SUBSCRIPTION_ID = (117, False, "The telemetry subscription is not the current one.")
    TELEMETRY_TOO_LARGE = (118, False, "The telemetry data is larger than the broker accepts.")
    INVALID_REGISTRATION = (119, False, "The controller refuses the registration of this broker.")
    TRANSACTION_ABORTABLE = (
        120,
        False,
        "The transaction must be aborted; the producer may go on afterwards.",
    )
    INVALID_RECORD_STATE = (
        121,
        False,
        "The record is not in the state the acknowledgement assumes.",
    )
    SHARE_SESSION_NOT_FOUND = (122, True, "The share session does not exist.")
    INVALID_SHARE_SESSION_EPOCH = (123, True, "The share session epoch is not the one expected.")
    FENCED_STATE_EPOCH = (
        124,
        False,
        "The state epoch of the share group is older than the current one.",
    )
    INVALID_VOTER_KEY = (125, False, "The voter's directory id is not the one on record.")
    DUPLICATE_VOTER = (126, False, "The voter is a member of the quorum already.")
    VOTER_NOT_FOUND = (127, False, "The voter is not a member of the quorum.")
    INVALID_REGULAR_EXPRESSION = (128, False, "The regular expression cannot be used.")
    REBOOTSTRAP_REQUIRED = (
        129,
        False,
        "The client's metadata is too old; it must start from its bootstrap servers.",
    )
    STREAMS_INVALID_TOPOLOGY = (130, False, "The topology of the streams application is not legal.")
    STREAMS_INVALID_TOPOLOGY_EPOCH = (131, False, "The topology epoch is not the one expected.")
    STREAMS_TOPOLOGY_FENCED = (132, False, "The topology is older than the group's.")
    SHARE_SESSION_LIMIT_REACHED = (133, True, "No further share session can be opened.")
