"""What is answered to requests about quotas that cannot be carried out, and to requests beyond a quota."""

from headrace.protocol.errors import ErrorCode, KafkaError


class InvalidQuota(KafkaError):
    """An entity, a quota key, a value or a filter is invalid."""

    code = ErrorCode.INVALID_REQUEST


class UnknownEntityType(KafkaError):
    """A filter names another entity type than user, client-id and ip."""

    code = ErrorCode.UNSUPPORTED_VERSION


class ThrottlingQuotaExceeded(KafkaError):
    """The client's controller_mutation_rate is exhausted."""

    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
