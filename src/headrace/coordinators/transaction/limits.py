"""The settings of the transaction coordinator."""

from typing import NamedTuple


class TransactionLimits(NamedTuple):
    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    two_phase_commit: bool = False
