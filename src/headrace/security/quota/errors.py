"""What is answered to requests about quotas that cannot be carried out, and to requests beyond a quota."""

from headrace.protocol.errors import ErrorCode, KafkaError


class InvalidQuota(KafkaError, code=ErrorCode.INVALID_REQUEST):
    """An entity, a quota key, a value or a filter is invalid."""


class UnknownEntityType(KafkaError, code=ErrorCode.UNSUPPORTED_VERSION):
    """A filter names another entity type than user, client-id and ip."""


class ThrottlingQuotaExceeded(KafkaError, code=ErrorCode.THROTTLING_QUOTA_EXCEEDED):
    """The client's controller_mutation_rate is exhausted."""
