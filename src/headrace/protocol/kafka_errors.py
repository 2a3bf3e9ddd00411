"""Errors that several packages raise: one class for each refusal, with its Kafka error code."""

from headrace.protocol.errors import ErrorCode, KafkaError


class NotController(KafkaError, code=ErrorCode.NOT_CONTROLLER):
    """Another broker is the controller, or none is elected at the moment."""


class InvalidRequest(KafkaError, code=ErrorCode.INVALID_REQUEST):
    """The request contradicts itself, or names something that cannot be changed."""


class UnknownTopicOrPartition(KafkaError, code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
    """The topic or partition does not exist."""


class TopicAlreadyExists(KafkaError, code=ErrorCode.TOPIC_ALREADY_EXISTS):
    """A topic with this name exists already."""


class InvalidPartitions(KafkaError, code=ErrorCode.INVALID_PARTITIONS):
    """The number of partitions is out of range, or a topic cannot get that many."""


class InvalidReplicationFactor(KafkaError, code=ErrorCode.INVALID_REPLICATION_FACTOR):
    """The replication factor is below 1 or above the number of live brokers."""


class InvalidReplicaAssignment(KafkaError, code=ErrorCode.INVALID_REPLICA_ASSIGNMENT):
    """The requested replicas cannot be assigned."""


class InvalidConfig(KafkaError, code=ErrorCode.INVALID_CONFIG):
    """A config is unknown or has an invalid value."""


class PolicyViolation(KafkaError, code=ErrorCode.POLICY_VIOLATION):
    """The configuration of the broker forbids this."""


class FencedLeaderEpoch(KafkaError, code=ErrorCode.FENCED_LEADER_EPOCH):
    """A request names an older leader epoch than the current one."""


class InvalidUpdateVersion(KafkaError, code=ErrorCode.INVALID_UPDATE_VERSION):
    """An AlterPartition request was made for another partition epoch."""


class IneligibleReplica(KafkaError, code=ErrorCode.INELIGIBLE_REPLICA):
    """A replica that a leader proposes for the ISR cannot join it."""


class StaleBrokerEpoch(KafkaError, code=ErrorCode.STALE_BROKER_EPOCH):
    """The request comes from an earlier registration of a broker."""


class ElectionNotNeeded(KafkaError, code=ErrorCode.ELECTION_NOT_NEEDED):
    """The leader that is asked for, or any leader at all, leads already."""


class PreferredLeaderNotAvailable(KafkaError, code=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE):
    """The preferred replica cannot lead."""


class EligibleLeadersNotAvailable(KafkaError, code=ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE):
    """No live replica could lead, not even with an unclean election."""


class NoReassignmentInProgress(KafkaError, code=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS):
    """There is no reassignment to cancel."""


class LeaderNotSteppedDown(KafkaError, code=ErrorCode.REQUEST_TIMED_OUT):
    """A live leader has not agreed in time to be replaced, so nothing was changed."""


class SecurityDisabled(KafkaError, code=ErrorCode.SECURITY_DISABLED):
    """ACLs need an authorizer, and delegation tokens a secret key."""


class UnsupportedSaslMechanism(KafkaError, code=ErrorCode.UNSUPPORTED_SASL_MECHANISM):
    """There is no SCRAM mechanism of this number."""


class UnacceptableCredential(KafkaError, code=ErrorCode.UNACCEPTABLE_CREDENTIAL):
    """A credential cannot be stored: no user name, no salt, or too few or too many iterations."""


class ResourceNotFound(KafkaError, code=ErrorCode.RESOURCE_NOT_FOUND):
    """There is no such credential."""


class DuplicateResource(KafkaError, code=ErrorCode.DUPLICATE_RESOURCE):
    """A request names the same credential twice."""
