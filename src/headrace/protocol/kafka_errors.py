"""Errors that several packages raise: one class for each refusal, with its Kafka error code."""

from headrace.protocol.errors import ErrorCode, KafkaError


class NotController(KafkaError):
    """Another broker is the controller, or none is elected at the moment."""

    code = ErrorCode.NOT_CONTROLLER


class InvalidRequest(KafkaError):
    """The request contradicts itself, or names something that cannot be changed."""

    code = ErrorCode.INVALID_REQUEST


# -- topics and configs ------------------------------------------------------------------------


class UnknownTopicOrPartition(KafkaError):
    """The topic or partition does not exist."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TopicAlreadyExists(KafkaError):
    """A topic with this name exists already."""

    code = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidPartitions(KafkaError):
    """The number of partitions is out of range, or a topic cannot get that many."""

    code = ErrorCode.INVALID_PARTITIONS


class InvalidReplicationFactor(KafkaError):
    """The replication factor is below 1 or above the number of live brokers."""

    code = ErrorCode.INVALID_REPLICATION_FACTOR


class InvalidReplicaAssignment(KafkaError):
    """The requested replicas cannot be assigned."""

    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT


class InvalidConfig(KafkaError):
    """A config is unknown or has an invalid value."""

    code = ErrorCode.INVALID_CONFIG


class PolicyViolation(KafkaError):
    """The configuration of the broker forbids this."""

    code = ErrorCode.POLICY_VIOLATION


# -- leaders, ISRs and reassignments -----------------------------------------------------------


class FencedLeaderEpoch(KafkaError):
    """A request names an older leader epoch than the current one."""

    code = ErrorCode.FENCED_LEADER_EPOCH


class InvalidUpdateVersion(KafkaError):
    """An AlterPartition request was made for another partition epoch."""

    code = ErrorCode.INVALID_UPDATE_VERSION


class IneligibleReplica(KafkaError):
    """A replica that a leader proposes for the ISR cannot join it."""

    code = ErrorCode.INELIGIBLE_REPLICA


class StaleBrokerEpoch(KafkaError):
    """The request comes from an earlier registration of a broker."""

    code = ErrorCode.STALE_BROKER_EPOCH


class ElectionNotNeeded(KafkaError):
    """The leader that is asked for, or any leader at all, leads already."""

    code = ErrorCode.ELECTION_NOT_NEEDED


class PreferredLeaderNotAvailable(KafkaError):
    """The preferred replica cannot lead."""

    code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


class EligibleLeadersNotAvailable(KafkaError):
    """No live replica could lead, not even with an unclean election."""

    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


class NoReassignmentInProgress(KafkaError):
    """There is no reassignment to cancel."""

    code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


class LeaderNotSteppedDown(KafkaError):
    """A live leader has not agreed in time to be replaced, so nothing was changed."""

    code = ErrorCode.REQUEST_TIMED_OUT


# -- security -------------------------------------------------------------------------------------


class SecurityDisabled(KafkaError):
    """ACLs need an authorizer, and delegation tokens a secret key."""

    code = ErrorCode.SECURITY_DISABLED


class UnsupportedSaslMechanism(KafkaError):
    """There is no SCRAM mechanism of this number."""

    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM


class UnacceptableCredential(KafkaError):
    """A credential cannot be stored: no user name, no salt, or too few or too many iterations."""

    code = ErrorCode.UNACCEPTABLE_CREDENTIAL


class ResourceNotFound(KafkaError):
    """There is no such credential."""

    code = ErrorCode.RESOURCE_NOT_FOUND


class DuplicateResource(KafkaError):
    """A request names the same credential twice."""

    code = ErrorCode.DUPLICATE_RESOURCE
