"""A ZooKeeper client by hand: every byte under control, every message in the order it came."""

import socket
from collections.abc import Iterator
from itertools import count
from struct import Struct, pack

from headrace.coordination.embedded.jute import INT, LONG, Reader, buffer, frame

WAIT_S = 15
_REPLY = Struct(">iqi")

Message = tuple[int, int, int, bytes]
"""xid, zxid, error, body"""


class Wire:
    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), WAIT_S)
        self._file = self.socket.makefile("rb")
        self._xids = count(1)

    def send_connect(
        self, timeout_ms: int, session_id: int = 0, password: bytes = bytes(16), last_zxid: int = 0
    ) -> None:
        numbers = pack(">iqiq", 0, last_zxid, timeout_ms, session_id)
        self.socket.sendall(frame(numbers, buffer(password), b"\0"))

    def connect(
        self, timeout_ms: int = 4000, session_id: int = 0, password: bytes = bytes(16)
    ) -> tuple[int, int, bytes]:
        """Timeout, session id and password that the server grants."""
        self.send_connect(timeout_ms, session_id, password)
        reader = Reader(self._frame())
        _, timeout, session = reader.int32(), reader.int32(), reader.int64()
        return timeout, session, reader.buffer() or b""

    def send(self, op: int, body: bytes = b"", xid: int | None = None) -> int:
        xid = next(self._xids) if xid is None else xid
        self.socket.sendall(frame(INT.pack(xid), INT.pack(op), body))
        return xid

    def receive(self) -> Message:
        message = self._frame()
        xid, zxid, error = _REPLY.unpack_from(message)
        return xid, zxid, error, message[_REPLY.size :]

    def ask(self, op: int, body: bytes = b"", xid: int | None = None) -> tuple[int, bytes]:
        """Error and body of the reply; events before it are an error of the test's."""
        sent = self.send(op, body, xid)
        got, _zxid, error, reply = self.receive()
        assert got == sent, (got, sent)
        return error, reply

    def until_reply(self, xid: int) -> Iterator[Message]:
        while True:
            message = self.receive()
            yield message
            if message[0] == xid:
                return

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def is_closed_by_server(self) -> bool:
        try:
            return self._file.read(1) == b""
        except ConnectionResetError:
            return True

    def _frame(self) -> bytes:
        head = self._file.read(4)
        if len(head) < 4:
            raise ConnectionError("the server hung up")
        return self._file.read(INT.unpack(head)[0])


def event(message: Message) -> tuple[int, str]:
    """Type and path."""
    reader = Reader(message[3])
    kind, _state = reader.int32(), reader.int32()
    return kind, reader.string()


def long(value: int) -> bytes:
    return LONG.pack(value)
