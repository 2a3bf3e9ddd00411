"""The refusal of transactional producers: transactions are not supported yet."""

import logging
from typing import Final

from headrace.protocol.errors import ErrorCode, KafkaError

MAX_WARNED: Final = 1_000  # transactional ids that the log mentions; later ones are refused without a line
_SHOWN_CHARS: Final = 100  # of a transactional id or a client id, which may be 32 KiB long

logger = logging.getLogger(__name__)


class TransactionsUnsupported(KafkaError):
    """A producer has a transactional.id.

    CLUSTER_AUTHORIZATION_FAILED is the one error of FindCoordinator that is fatal for every producer (Java,
    librdkafka, kafka-python, aiokafka) and whose message Java and librdkafka show to the application.
    librdkafka retries UNSUPPORTED_VERSION, INVALID_REQUEST and the like until its timeout; Java drops the
    message of TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
    """

    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class Transactions:
    """Refuses every transactional id, and warns of each one once."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def refusal(self, transactional_id: str, client_id: str | None, address: str) -> TransactionsUnsupported:
        """Return the error for a producer with `transactional_id`; log a warning if the id is new."""
        shown = transactional_id[:_SHOWN_CHARS]
        if len(self._warned) < MAX_WARNED and shown not in self._warned:
            self._warned.add(shown)
            logger.warning(
                "refusing a producer of client %r at %s with transactional.id=%r: "
                "transactions are not supported%s",
                (client_id or "")[:_SHOWN_CHARS],
                address,
                shown,
                "; further refusals are not logged" if len(self._warned) == MAX_WARNED else "",
            )
        return TransactionsUnsupported(
            f"Headrace does not support transactions: remove transactional.id={shown!r} from the producer; "
            "enable.idempotence=true works without it"
        )
