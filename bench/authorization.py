"""What an ACL check costs: with many ACLs, for decisions that are remembered, and for new ones.

.venv/bin/python bench/authorization.py
"""

import time
from collections.abc import Callable
from typing import Final

from headrace.security.acl_authorizer import AclAuthorizer
from headrace.security.acl_index import AclIndex
from headrace.security.acls import AclEntry, PatternType, PermissionType, ResourcePattern
from headrace.security.authorization import Operation, ResourceType
from headrace.security.principals import Principal

PATTERNS: Final = (10, 1_000, 100_000)
CHECKS: Final = 200_000
NEW_CHECKS: Final = 20_000
ALICE: Final = Principal("alice")
ADMIN: Final = Principal("admin")
HOST: Final = "10.0.0.7"


def main() -> None:
    print(f"{'patterns':>10}  {'remembered':>12}  {'new':>12}  {'super user':>12}")
    for patterns in PATTERNS:
        print(f"{patterns:>10,}  " + "  ".join(f"{each:>9.2f} us" for each in _figures(patterns)))


def _figures(patterns: int) -> tuple[float, float, float]:
    authorizer = AclAuthorizer(_index(patterns), super_users=[ADMIN])
    names = [f"topic-{number}" for number in range(100)]
    for name in names:
        _check(authorizer, ALICE, name)
    return (
        _measured(CHECKS, lambda number: _check(authorizer, ALICE, names[number % 100])),
        _measured(NEW_CHECKS, lambda number: _check(authorizer, ALICE, f"never-seen-{number}")),
        _measured(CHECKS, lambda number: _check(authorizer, ADMIN, names[number % 100])),
    )


def _check(authorizer: AclAuthorizer, principal: Principal, name: str) -> bool:
    return authorizer.allows(principal, HOST, Operation.WRITE, ResourceType.TOPIC, name)


def _index(patterns: int) -> AclIndex:
    """Half of the patterns are literal and half are prefixes of ten lengths."""
    entry = AclEntry("User:alice", "*", Operation.WRITE, PermissionType.ALLOW)
    literal = {
        ResourcePattern(ResourceType.TOPIC, f"topic-{number}"): [entry] for number in range(patterns // 2)
    }
    prefixed = {
        ResourcePattern(
            ResourceType.TOPIC, f"{'team' * (number % 10 + 1)}-{number}-", PatternType.PREFIXED
        ): [entry]
        for number in range(patterns // 2)
    }
    return AclIndex({**literal, **prefixed})


def _measured(checks: int, check: Callable[[int], object]) -> float:
    """Return the microseconds of a check, without those of the loop."""
    began = time.process_time()
    for number in range(checks):
        check(number)
    whole = time.process_time() - began
    began = time.process_time()
    for number in range(checks):
        str(number)
    return (whole - (time.process_time() - began)) / checks * 1e6


if __name__ == "__main__":
    main()
