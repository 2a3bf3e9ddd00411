"""ZooKeeper's error codes, and the exception that carries one."""

from enum import IntEnum


class ErrorCode(IntEnum):
    """The codes of ZooKeeper's KeeperException.Code that a single node uses."""

    OK = 0
    RUNTIME_INCONSISTENCY = -2
    MARSHALLING_ERROR = -5
    UNIMPLEMENTED = -6
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    INVALID_ACL = -114
    AUTH_FAILED = -115
    SESSION_CLOSED_REQUIRE_SASL_AUTH = -124
    QUOTA_EXCEEDED = -125


class KeeperError(Exception):
    """The request is refused with an error code; nothing has changed."""

    def __init__(self, code: ErrorCode, about: str = "") -> None:
        super().__init__(f"{code.name} {about}".rstrip())
        self.code = code


class MalformedRequest(Exception):
    """The bytes violate ZooKeeper's protocol."""
