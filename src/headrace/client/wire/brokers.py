"""The brokers of a cluster, asked in Kafka's own words: any of them, a certain one, or the controller.

Brokers("127.0.0.1:9092").controller(ListPartitionReassignmentsRequest()).topics
"""

import time
from collections.abc import Iterable, Iterator
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from headrace.client.errors import ClientError, Unreachable
from headrace.client.wire.connection import ANSWER_S, CLIENT_ID, Address, Connection, NoAnswer
from headrace.client.wire.security import PLAINTEXT, Security
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.schema.metadata import MetadataRequest, MetadataResponse

PATIENCE_S: Final = 30.0  # with a cluster that is between two controllers
RETRY_S: Final = 0.2
_PASSES: Final = {
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
}


class NoController(Unreachable):
    """There are brokers, but none of them can decide anything just now."""


class Brokers:
    """Keeps a connection to each broker that was asked; not for several threads at a time."""

    def __init__(
        self,
        bootstrap: str,
        *,
        answer_s: float = ANSWER_S,
        client_id: str = CLIENT_ID,
        security: Security = PLAINTEXT,
    ) -> None:
        self._bootstrap = bootstrap
        self._connect = partial(Connection, answer_s=answer_s, client_id=client_id, security=security)
        self.addresses = list(addresses_of(bootstrap))  # of all that may be asked
        self._open: dict[Address, Connection] = {}
        self._has_answered = False
        self._silent: set[Address] = set()  # those that gave no answer when they were last asked

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    def any(self, request: Message) -> Any:
        """The answer of the first broker that gives one; Unreachable if there is none."""
        why = "expected HOST:PORT,..."
        for address in sorted(self.addresses, key=self._silent.__contains__):
            try:
                answer = self.at(address, request)
            except NoAnswer as error:
                why = f"{error}; {error.doubt}" if error.doubt and not self._has_answered else str(error)
            else:
                if isinstance(answer, MetadataResponse):
                    self.know(Address(each.host, each.port) for each in answer.brokers)
                return answer
        raise Unreachable(f"no broker answers at {self._bootstrap}: {why}")

    def at(self, address: Address, request: Message) -> Any:
        """The answer of the broker at `address`; NoAnswer if it gives none."""
        try:
            answer = self._connection(address).ask(request)
        except NoAnswer:
            self._open.pop(address, None)
            self._silent.add(address)
            raise
        self._has_answered = True
        self._silent.discard(address)
        return answer

    def controller(self, request: Message, *, patience_s: float = PATIENCE_S) -> Any:
        """The controller's answer, also if there has to be a new one first: so ask what may be asked twice.

        ClientError if it refuses the request as a whole, NoController if there is none for so long.
        """
        deadline = time.monotonic() + patience_s
        while True:
            try:
                response = self.at(self._controller(patient=patience_s > 0), request)
            except NoAnswer as error:
                why = str(error)
            else:
                if response.error_code not in {ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION}:
                    raise_for(response.error_code, getattr(response, "error_message", None))
                    return response
                why = "it is not the controller any more"
            if time.monotonic() > deadline:
                raise NoController(f"the cluster has no controller that answers: {why}")
            time.sleep(RETRY_S)

    def metadata(self) -> MetadataResponse:
        """Brokers, topics and partitions, as the controller sees them if it answers."""
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        found: MetadataResponse = self.any(request)
        brokers = {each.node_id: Address(each.host, each.port) for each in found.brokers}
        controller = brokers.get(found.controller_id)
        if controller is None or controller in self._silent:
            return found
        try:
            return self.at(controller, request)  # type: ignore[no-any-return]
        except NoAnswer:
            return found

    def know(self, addresses: Iterable[Address]) -> None:
        """These are brokers of the cluster, too: any of them may be asked."""
        self.addresses = list(dict.fromkeys([*addresses, *self.addresses]))

    def _controller(self, *, patient: bool) -> Address:
        found: MetadataResponse = self.any(MetadataRequest(topics=[], allow_auto_topic_creation=False))
        for each in found.brokers:
            address = Address(each.host, each.port)
            if each.node_id == found.controller_id and (patient or address not in self._silent):
                return address
        raise NoAnswer("there is no controller at the moment")

    def _connection(self, address: Address) -> Connection:
        if address not in self._open:
            self._open[address] = self._connect(address)
        return self._open[address]


def raise_for(code: int, message: str | None, what: str | None = None) -> None:
    """ClientError in the broker's words if `code` is one; Unreachable if it will pass."""
    if code == ErrorCode.NONE:
        return
    said = message or ErrorCode(code).name.replace("_", " ").lower()
    kind = Unreachable if code in _PASSES else ClientError
    raise kind(said if what is None else f"{what}: {said}")


def addresses_of(bootstrap: str) -> Iterator[Address]:
    """What is an address in `HOST:PORT,...`."""
    for text in bootstrap.split(","):
        host, colon, port = text.strip().rpartition(":")
        if colon and host and port.isdigit() and int(port) < 65536:
            yield Address(host.strip("[]"), int(port))
