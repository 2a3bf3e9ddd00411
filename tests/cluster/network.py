"""A network that the test makes and cuts: every host a namespace, all connected through one that routes.

    this machine ── router ── host 1, host 2, …

What is cut is dropped without a word, both ways, as a cable that is pulled: the router has a rule for it.
A host may also find the address of another on itself: it is refused there, although the other is well.
It takes `ip` and the right to make namespaces; where either is missing, `why_not` says so.
"""

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from cluster.places import Place

NET: Final = f"10.{200 + os.getpid() % 50}"  # private, rarely used, and not that of a test beside this one
ROUTER: Final = 250  # as a host's number: where this machine is connected


def why_not() -> str | None:
    """Why there can be no such network here; None if there can."""
    if shutil.which("ip") is None:
        return "network namespaces need the command `ip` (iproute2)"
    name = f"hr{os.getpid()}try"
    try:
        _ip("netns", "add", name)
        try:
            _ip("-n", name, "rule", "add", "from", "10.0.0.1", "to", "10.0.0.2", "blackhole")
            _ip("-n", name, "link", "add", "one", "type", "veth", "peer", "name", "other")
        finally:
            _ip("netns", "del", name)
    except subprocess.CalledProcessError as error:
        return f"network namespaces are not permitted here: {error.stderr.strip()}"
    return None


class Network:
    """Hosts with an address each, and which pairs of them cannot reach one another."""

    def __init__(self, hosts: int) -> None:
        self._prefix = f"hr{os.getpid()}"
        self._router = f"{self._prefix}r"
        self.places = [Place(_address(number), self._exec(number)) for number in range(1, hosts + 1)]
        self._cuts: set[tuple[str, str]] = set()
        self._refusals: set[tuple[int, str]] = set()  # a host's number, and whose connections it is refused

    @classmethod
    @contextmanager
    def of(cls, hosts: int) -> Iterator["Network"]:
        """A network of so many hosts, gone at the end with everything in it."""
        network = cls(hosts)
        try:
            network._build(hosts)
            yield network
        finally:
            network._remove(hosts)

    def cut(self, some: Iterable[Place], others: Iterable[Place]) -> None:
        """Nothing gets from `some` to `others` any more, or back."""
        for one, other in itertools.product(some, others):
            for source, target in ((one.host, other.host), (other.host, one.host)):
                if (source, target) not in self._cuts:
                    _ip("-n", self._router, "rule", "add", "from", source, "to", target, "blackhole")
                    self._cuts.add((source, target))

    def refuse(self, one: Place, other: Place) -> None:
        """Connections from `one` to `other` are refused from now on, and those there are fall silent."""
        number = self.places.index(one) + 1
        _ip("-n", self._name(number), "addr", "add", f"{other.host}/32", "dev", "lo")
        self._refusals.add((number, other.host))

    def mend(self) -> None:
        for number, address in self._refusals:
            _ip("-n", self._name(number), "addr", "del", f"{address}/32", "dev", "lo")
        self._refusals.clear()
        for source, target in self._cuts:
            _ip("-n", self._router, "rule", "del", "from", source, "to", target, "blackhole")
        self._cuts.clear()

    def _build(self, hosts: int) -> None:
        _ip("netns", "add", self._router)
        _ip("netns", "exec", self._router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        for number in range(1, hosts + 1):
            name = self._name(number)
            _ip("netns", "add", name)
            _ip(
                "-n", self._router, "link", "add", f"h{number}", "type", "veth", "peer", "eth0", "netns", name
            )
            self._connect(number, ["-n", name], "eth0")
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "route", "add", "default", "via", _gateway(number))
        here = f"{self._prefix}h"
        _ip("-n", self._router, "link", "add", f"h{ROUTER}", "type", "veth", "peer", here)
        _ip("-n", self._router, "link", "set", here, "netns", str(os.getpid()))
        self._connect(ROUTER, [], here)
        for number in range(1, hosts + 1):
            _ip("route", "add", f"{NET}.{number}.0/24", "via", _gateway(ROUTER))

    def _connect(self, number: int, where: list[str], device: str) -> None:
        """Addresses for both ends of a cable, one of them the router's."""
        _ip("-n", self._router, "addr", "add", f"{_gateway(number)}/24", "dev", f"h{number}")
        _ip("-n", self._router, "link", "set", f"h{number}", "up")
        _ip(*where, "addr", "add", f"{_address(number)}/24", "dev", device)
        _ip(*where, "link", "set", device, "up")

    def _remove(self, hosts: int) -> None:
        """With a namespace go its devices, and with a device its routes."""
        there = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        names = {line.split()[0] for line in there.splitlines() if line}
        for name in (self._router, *(self._name(number) for number in range(1, hosts + 1))):
            if name in names:
                _ip("netns", "del", name)

    def _name(self, number: int) -> str:
        return f"{self._prefix}-{number}"

    def _exec(self, number: int) -> tuple[str, ...]:
        return ("ip", "netns", "exec", self._name(number))


def _address(number: int) -> str:
    return f"{NET}.{number}.2"


def _gateway(number: int) -> str:
    return f"{NET}.{number}.1"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
