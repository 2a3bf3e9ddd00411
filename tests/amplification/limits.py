"""What a request may cost a broker, generously: machines differ, and defects were a hundred times as much."""

from typing import Final

from amplification.broker import Cost
from headrace.broker.handlers.metadata import CREATED_TOGETHER
from headrace.protocol.schema.index import ApiKey

HOLD_S: Final = 0.25
"""CPU time for which nobody else is served."""
CPU_S: Final = 0.5
CPU_S_PER_BYTE: Final = 10e-6
"""All CPU time: so much for any request, and so much for each of its bytes."""
RECEIVED_BYTES: Final = 2**20
RECEIVED_PER_BYTE: Final = 100
"""The size of its response, in the same way."""
RETAINED_BYTES: Final = 64 * 2**20
"""What the broker has grown by after all requests of one API, whose connections are closed."""
_CREATED_TOPIC_S: Final = 0.1


def excesses(key: int, cost: Cost) -> list[str]:
    """What is too much about a request, in words; nothing if all is well."""
    found = []
    if cost.hold_s > HOLD_S:
        found.append(f"holds the event loop for {cost.hold_s * 1e3:.0f} ms of CPU time")
    created_s = CREATED_TOGETHER * _CREATED_TOPIC_S if key == ApiKey.METADATA else 0.0
    if cost.cpu_s > CPU_S + CPU_S_PER_BYTE * cost.sent_bytes + created_s:
        found.append(f"costs {cost.cpu_s:.1f} s of CPU time for {cost.sent_bytes} bytes")
    if cost.received_bytes > RECEIVED_BYTES + RECEIVED_PER_BYTE * cost.sent_bytes:
        found.append(f"is answered with {cost.received_bytes} bytes for {cost.sent_bytes}")
    return found
