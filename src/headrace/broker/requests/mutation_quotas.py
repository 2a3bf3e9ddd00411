"""The controller_mutation_rate of a client (KIP-599), while one request creates or deletes partitions."""

import time

from headrace.broker.quotas.throttling import STRICT_SINCE, RequestUsage
from headrace.broker.requests.dispatch import Context
from headrace.protocol.schema.index import ApiKey
from headrace.security.quota.entities import ThrottlingQuotaExceeded


class MutationQuota:
    """The quota of the client of one request.

    In the versions since KIP-599 it is strict: what exceeds it is refused with THROTTLING_QUOTA_EXCEEDED. In
    older ones everything is carried out, and the client is throttled afterwards.
    """

    def __init__(self, usage: RequestUsage | None, *, strict: bool) -> None:
        self._usage = usage
        self._strict = strict
        self._ends_s = 0.0

    @classmethod
    def of(cls, context: Context, key: ApiKey) -> "MutationQuota":
        return cls(context.usage, strict=context.version >= STRICT_SINCE[key])

    def charge(self, partitions: int) -> None:
        """Charge the creation or deletion of partitions; raise ThrottlingQuotaExceeded if it is refused."""
        if self._usage is None:
            return
        throttle_ms = self._usage.mutate(partitions, strict=self._strict)
        if throttle_ms:
            self._ends_s = time.monotonic() + throttle_ms / 1000
            if self._strict:
                raise ThrottlingQuotaExceeded(
                    "the client has exceeded its controller_mutation_rate: "
                    f"retry in {throttle_ms} ms (THROTTLING_QUOTA_EXCEEDED)"
                )

    @property
    def throttle_ms(self) -> int:
        """The throttle time of the response; the time that has passed since the refusal is deducted."""
        return max(0, round((self._ends_s - time.monotonic()) * 1000))
