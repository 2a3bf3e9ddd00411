"""The payloads of JoinGroup and SyncGroup: the subscriptions and assignments of consumers.

To the wire protocol these are opaque bytes, preceded by their own version. A version newer
than we know is decoded as the newest known one, and the rest is ignored: newer versions only add fields.
"""

import struct
from typing import Any, Final

from headrace.protocol.errors import ProtocolError
from headrace.protocol.fields import Buffer
from headrace.protocol.message import Message
from headrace.protocol.schema.consumer_protocol_assignment import ConsumerProtocolAssignment
from headrace.protocol.schema.consumer_protocol_subscription import ConsumerProtocolSubscription

__all__ = [
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
    "encode_subscription",
]


MAX_SUBSCRIPTION_BYTES: Final = 256 * 1024
"""The largest subscription that a broker decodes: some 6,000 topics with long names."""


def encode_subscription(subscription: ConsumerProtocolSubscription, version: int) -> bytes:
    return _encode(subscription, version)


def encode_assignment(assignment: ConsumerProtocolAssignment, version: int) -> bytes:
    return _encode(assignment, version)


def decode_subscription(data: Buffer) -> ConsumerProtocolSubscription:
    """Decode a member's subscription; raise ProtocolError if it is malformed or too large."""
    if len(data) > MAX_SUBSCRIPTION_BYTES:
        raise ProtocolError(
            f"a subscription of {len(data)} bytes is not decoded: the limit is {MAX_SUBSCRIPTION_BYTES}"
        )
    subscription: ConsumerProtocolSubscription = _decode(ConsumerProtocolSubscription, data)
    return subscription


def decode_assignment(data: Buffer) -> ConsumerProtocolAssignment:
    assignment: ConsumerProtocolAssignment = _decode(ConsumerProtocolAssignment, data)
    return assignment


def _encode(message: Message, version: int) -> bytes:
    return struct.pack(">h", version) + b"".join(message.encode(version))


def _decode(cls: type[Message], data: Buffer) -> Any:
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        raise ProtocolError(f"{cls.__name__}: {bytes(data[:2])!r} is not a version")
    newest = cls.__codec__.versions[-1]
    return cls.__codec__.decode(memoryview(data)[2:], min(version, newest), trailing=True)
