"""Kafka's error codes.

A code travels as an int16; the sentence beside it is for people and never for programs. Retriable
means: the same request may succeed later, and clients do try again by themselves (most of them
after refreshing their metadata).

Source: Kafka 4.2, Errors.java, for numbers, names and which errors are retriable.
"""

from enum import IntEnum
from typing import Final


class ErrorCode(IntEnum):
    """Error codes of the protocol, -1 to 133."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133

    @property
    def retriable(self) -> bool:
        """Whether a client may repeat the request unchanged."""
        return self in _RETRIABLE

    @property
    def message(self) -> str:
        """One sentence for people."""
        return _MESSAGES[self]


_RETRIABLE: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)

_MESSAGES: Final = {
    -1: "The broker met an error it did not expect.",
    0: "No error.",
    1: "The offset is outside the range this partition holds.",
    2: "The record data is damaged: checksum, size or structure do not hold.",
    3: "This broker does not host the topic or partition.",
    4: "The fetch size is not usable.",
    5: "The partition has no leader at the moment.",
    6: "This broker is not the leader, or not a replica, of the partition.",
    7: "The request was not finished within its time limit.",
    8: "The broker is not available.",
    9: "The replica is not available for this partition.",
    10: "A record batch is larger than this topic or broker accepts.",
    11: "The controller epoch is older than the current one.",
    12: "The metadata string of an offset commit is too long.",
    13: "The connection broke before an answer arrived.",
    14: "The coordinator is still loading its state.",
    15: "The coordinator is not available.",
    16: "This broker does not coordinate that group or transaction.",
    17: "The topic name is not legal.",
    18: "The batches of one append are together larger than a segment.",
    19: "Too few replicas are in sync to accept the write.",
    20: "The records were written, but too few replicas were in sync.",
    21: "Required acks must be -1, 0 or 1.",
    22: "The generation is not the current one of the group.",
    23: "The member shares no assignment protocol with the group.",
    24: "The group id is not legal.",
    25: "The group does not know this member.",
    26: "The session timeout is outside the bounds the broker allows.",
    27: "The group is rebalancing; the member should join again.",
    28: "The offset commit does not fit into one record.",
    29: "The client may not access the topic.",
    30: "The client may not access the group.",
    31: "The client may not act on the cluster.",
    32: "A record's timestamp is outside the bounds of its topic.",
    33: "The SASL mechanism is not enabled here.",
    34: "The request does not fit the state of the SASL exchange.",
    35: "This version of the API is not supported.",
    36: "A topic of that name exists already.",
    37: "The number of partitions is not legal.",
    38: "The replication factor is not legal or larger than the number of brokers.",
    39: "The replica assignment is not legal.",
    40: "A configuration is not legal.",
    41: "This broker is not the controller.",
    42: "The request contradicts itself or lacks something.",
    43: "The message format in use does not support the operation.",
    44: "A policy of this cluster forbids the request.",
    45: "The sequence number is not the one expected from this producer.",
    46: "The sequence number was seen before.",
    47: "A newer producer with the same id has taken over.",
    48: "The transaction is in a state that does not allow the operation.",
    49: "The producer id does not belong to the transactional id.",
    50: "The transaction timeout is larger than the broker allows.",
    51: "Another operation on the same transaction is still running.",
    52: "A newer transaction coordinator has taken over.",
    53: "The client may not use the transactional id.",
    54: "Security features are switched off.",
    55: "The operation was not tried, because another part of the request failed.",
    56: "The disk failed while the log was read or written.",
    57: "The log directory is not one of this broker's.",
    58: "Authentication failed.",
    59: "The partition has no state of this producer.",
    60: "A reassignment of the partition is running.",
    61: "Delegation tokens are switched off.",
    62: "The delegation token does not exist.",
    63: "The delegation token belongs to somebody else.",
    64: "Delegation tokens cannot be requested over this kind of connection.",
    65: "The client may not access the delegation token.",
    66: "The delegation token has expired.",
    67: "The principal's type is not supported.",
    68: "The group still has members.",
    69: "The group does not exist.",
    70: "The fetch session does not exist any more.",
    71: "The fetch session epoch is not the one expected.",
    72: "The leader has no listener of the name the request came in by.",
    73: "Deletion of topics is switched off.",
    74: "The leader epoch in the request is older than the broker's.",
    75: "The leader epoch in the request is newer than the broker's.",
    76: "The version of the request does not allow this compression.",
    77: "The broker epoch is older than the current one.",
    78: "The new leader does not know yet up to where records are committed.",
    79: "The member must join again with the member id it was given.",
    80: "The preferred leader is not available.",
    81: "The group has as many members as it may have.",
    82: "A newer member uses the same static instance id.",
    83: "No replica that may become leader is available.",
    84: "The partition has the leader that was asked for.",
    85: "No reassignment of the partition is running.",
    86: "The group is subscribed to the topic.",
    87: "A record was refused by validation.",
    88: "Offsets wait for the end of an open transaction.",
    89: "A quota is used up.",
    90: "A newer producer with the same transactional id has taken over.",
    91: "What the request refers to does not exist.",
    92: "What the request would create exists already.",
    93: "The credential does not meet the requirements.",
    94: "The set of voters is not the one expected.",
    95: "The feature version is not legal.",
    96: "Updating a finalized feature failed.",
    97: "The forwarded principal cannot be read.",
    98: "The snapshot does not exist.",
    99: "The position lies beyond the end of the snapshot.",
    100: "No topic has that id.",
    101: "A broker with this id is registered already.",
    102: "No broker with this id is registered.",
    103: "The topic id is not the one in the log.",
    104: "The request is meant for another cluster.",
    105: "The transactional id does not exist.",
    106: "Names and ids of topics are mixed within one fetch session.",
    107: "The replica may not join the in-sync set.",
    108: "The change made another replica leader.",
    109: "The offset has moved to remote storage.",
    110: "The member epoch is older than the coordinator's; the member must start over.",
    111: "Another member still holds the static instance id.",
    112: "The group has no assignor of that name.",
    113: "The member epoch is older than the current one; retry with the new one.",
    114: "The request was sent to the wrong kind of endpoint.",
    115: "This kind of endpoint is not supported.",
    116: "The controller id is not known.",
    117: "The telemetry subscription is not the current one.",
    118: "The telemetry data is larger than the broker accepts.",
    119: "The controller refuses the registration of this broker.",
    120: "The transaction must be aborted; the producer may go on afterwards.",
    121: "The record is not in the state the acknowledgement assumes.",
    122: "The share session does not exist.",
    123: "The share session epoch is not the one expected.",
    124: "The state epoch of the share group is older than the current one.",
    125: "The voter's directory id is not the one on record.",
    126: "The voter is a member of the quorum already.",
    127: "The voter is not a member of the quorum.",
    128: "The regular expression cannot be used.",
    129: "The client's metadata is too old; it must start from its bootstrap servers.",
    130: "The topology of the streams application is not legal.",
    131: "The topology epoch is not the one expected.",
    132: "The topology is older than the group's.",
    133: "No further share session can be opened.",
}
