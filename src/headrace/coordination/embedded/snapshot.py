"""A snapshot: the whole state at one zxid, in one file, which gets its name only when it is complete.

The layout is in docs/formats.md. The checksum covers everything before it.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final

from headrace.coordination.embedded.errors import MalformedRequest
from headrace.coordination.embedded.jute import Reader, buffer, string
from headrace.coordination.embedded.node import Znode
from headrace.coordination.embedded.state import Image
from headrace.coordination.embedded.txnlog import TEMPORARY
from headrace.coordination.embedded.txns import decode_acl, encode_acl
from headrace.coordination.errors import CorruptJournal
from headrace.protocol.checksum import crc32c

MAGIC: Final = b"HRSNAPSH"
VERSION: Final = 1
HEAD: Final = Struct(">8sIqqIQ")  # magic, version, zxid, last session id, sessions, nodes
CHECKSUM: Final = Struct(">I")
_SESSION: Final = Struct(">qi")
_NODE: Final = Struct(">qqqqiiiqqi")  # czxid mzxid ctime mtime version cversion aversion owner pzxid children
_CHUNK: Final = 1 << 20  # written at a time: memory does not hold a second copy of the tree


def write_snapshot(path: Path, image: Image, *, sync: bool) -> None:
    """Write `image` to `path` atomically; blocking, in any thread."""
    temporary = path.with_name(path.name + TEMPORARY)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        checksum = 0
        for chunk in _chunks(image):
            checksum = crc32c(chunk, checksum)
            file.write(chunk)
        file.write(CHECKSUM.pack(checksum))
        file.flush()
        if sync:
            os.fsync(descriptor)
    temporary.replace(path)


def read_snapshot(path: Path) -> Image:
    """Read a snapshot; raise CorruptJournal if it is damaged."""
    content = path.read_bytes()
    body = content[: -CHECKSUM.size]
    if len(content) < HEAD.size + CHECKSUM.size or not content.startswith(MAGIC):
        raise CorruptJournal(path, 0, "not a snapshot of a coordinator")
    if CHECKSUM.unpack_from(content, len(body))[0] != crc32c(body):
        raise CorruptJournal(path, len(body), "the checksum does not match the content")
    _magic, version, zxid, last_session_id, session_count, node_count = HEAD.unpack_from(body)
    if version != VERSION:
        raise CorruptJournal(path, len(MAGIC), f"version {version}; this program knows version {VERSION}")
    reader = Reader(body, HEAD.size)
    try:
        sessions = []
        for _ in range(session_count):
            session_id, timeout_ms = reader.unpack(_SESSION)
            sessions.append((session_id, timeout_ms, reader.buffer() or b""))
        nodes = {
            reader.string(): Znode(reader.buffer(), decode_acl(reader), *reader.unpack(_NODE))
            for _ in range(node_count)
        }
    except MalformedRequest as error:
        raise CorruptJournal(path, reader.position, error) from None
    return Image(zxid, last_session_id, sessions, nodes)


def _chunks(image: Image) -> Iterator[bytes]:
    chunk = bytearray()
    for piece in _pieces(image):
        chunk += piece
        if len(chunk) >= _CHUNK:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk)


def _pieces(image: Image) -> Iterator[bytes]:
    sizes = len(image.sessions), len(image.nodes)
    yield HEAD.pack(MAGIC, VERSION, image.zxid, image.last_session_id, *sizes)
    for session_id, timeout_ms, password in image.sessions:
        yield _SESSION.pack(session_id, timeout_ms) + buffer(password)
    for path, node in image.nodes.items():
        yield b"".join((string(path), buffer(node.data), encode_acl(node.acl), _NODE.pack(*node[2:])))
