"""What is fuzzed: functions that take any bytes, and accept them or raise one of their expected errors.

Besides that, each target checks what must hold for bytes that it accepts.
"""

import base64
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from struct import pack
from typing import Final

from crc32c import crc32c
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from coordination.fakes import World, create_body, set_watches_body
from headrace.broker.slices import at_once
from headrace.coordination.embedded.authentication import Authentication
from headrace.coordination.embedded.errors import MalformedRequest
from headrace.coordination.embedded.handlers import answer
from headrace.coordination.embedded.jute import INT, Reader, buffer, frame, string
from headrace.coordination.embedded.requests import HEADER, Op, decode_connect
from headrace.protocol.api import ApiKey, decode_request, decode_request_in_slices
from headrace.protocol.batch import CRC_START, HEADER_SIZE, LENGTH_END, MAGIC, read_batch
from headrace.protocol.compression import Compression
from headrace.protocol.consumer_protocol import decode_assignment, decode_subscription
from headrace.protocol.errors import KafkaError, ProtocolError
from headrace.protocol.frame import FrameBuffer
from headrace.protocol.headers import decode_request_header, encode_request_header
from headrace.protocol.message import Message
from headrace.protocol.record_walk import walk_records
from headrace.protocol.records import decode_batch, keys_and_values, raw_records
from headrace.protocol.schema.consumer_protocol_assignment import ConsumerProtocolAssignment
from headrace.protocol.schema.consumer_protocol_subscription import ConsumerProtocolSubscription
from headrace.protocol.schema.request_header import RequestHeader
from headrace.security.certificate_fields import Malformed, subject_name
from headrace.security.principals import Principal
from headrace.security.sasl.digest_md5 import DigestMd5Client, DigestMd5Server
from headrace.security.sasl.exchange import AuthenticationFailed
from headrace.security.sasl.oauthbearer import InvalidToken, OAuthBearerExchange
from headrace.security.sasl.plain import PlainExchange
from headrace.security.sasl.scram import (
    FakeChallenge,
    ScramClient,
    ScramCredential,
    ScramExchange,
    TokenAccount,
)
from headrace.security.sasl.session import Mechanism, SaslSession
from headrace.security.sasl.tokens import TokenRules, TokenValidator
from oracles.messages import filled
from oracles.schemas import newest_cases
from support.certificates import Authority
from support.records import make_batch

_FRAME_BYTES: Final = 1 << 16
_PASSWORD: Final = "pencil"
_MAX_HEADERS: Final = 1000
_CRC: Final = slice(CRC_START - 4, CRC_START)
_MAGIC_AT: Final = 16
_EVENT_XID: Final = INT.pack(-1)


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    expected: tuple[type[Exception], ...] = ()
    words: Sequence[bytes] = ()


# -- Kafka's protocol ------------------------------------------------------------------------------


def split_frames(data: bytes) -> None:
    """The first byte says how the rest is cut into reads; however it is cut, the frames are the same."""
    step, stream = (data[0] + 1, data[1:]) if data else (1, b"")
    assert _frames(stream, step) == _frames(stream, len(stream) + 1)


def _frames(stream: bytes, step: int) -> list[bytes] | None:
    frames: list[bytes] = []
    found = FrameBuffer(max_frame_bytes=_FRAME_BYTES)
    position = 0
    try:
        while position < len(stream):
            room = found.get_buffer()
            count = min(step, len(room), len(stream) - position)
            room[:count] = stream[position : position + count]
            position += count
            frames += map(bytes, found.received(count))
    except ProtocolError:
        return None  # an invalid size: the connection is closed, whatever was complete before
    return frames


def read_request(data: bytes) -> None:
    """A request that is decoded can be encoded, and is then the same; decoding in steps agrees."""
    header, body = decode_request_header(memoryview(data))
    key, version = header.request_api_key, header.request_api_version
    try:
        request = decode_request(key, version, body)
    except KeyError as error:
        raise ProtocolError(str(error)) from error
    with suppress(ProtocolError):  # it has more elements than are accepted
        assert _is_same(at_once(decode_request_in_slices(key, version, body)), request, version)
    if version not in request.__codec__.versions:
        return  # an ApiVersions request of a newer client, which gets the versions that there are
    again = b"".join(request.encode(version))
    assert _is_same(decode_request(key, version, memoryview(again)), request, version)


def _is_same(one: Message, other: Message, version: int) -> bool:
    """Whether two requests are equal. A field that is not a number (NaN) equals nothing, so bytes decide."""
    return one == other or b"".join(one.encode(version)) == b"".join(other.encode(version))


def _requests() -> Iterable[bytes]:
    for case in newest_cases():
        key = case.cls.__api_key__
        if key is not None and case.cls.__name__.endswith("Request") and key in set(ApiKey):
            header = RequestHeader(
                request_api_key=key, request_api_version=case.version, correlation_id=1, client_id="fuzz"
            )
            body = filled(case.cls, case.version, times=1).encode(case.version)
            yield encode_request_header(header) + b"".join(body)


def read_consumer_protocol(data: bytes) -> None:
    with suppress(ProtocolError):
        decode_subscription(data)
    decode_assignment(data)


def _subscriptions() -> Iterable[bytes]:
    for case in newest_cases():
        if case.cls in {ConsumerProtocolSubscription, ConsumerProtocolAssignment}:
            yield pack(">h", case.version) + b"".join(
                filled(case.cls, case.version, times=1).encode(case.version)
            )


def read_record_batch(data: bytes) -> None:
    """Sizes and checksum are made right, so that the records are read at all."""
    batch = bytearray(data.ljust(HEADER_SIZE, b"\0"))
    batch[8:LENGTH_END] = INT.pack(len(batch) - LENGTH_END)
    batch[_MAGIC_AT] = MAGIC
    batch[_CRC] = crc32c(bytes(batch[CRC_START:])).to_bytes(4, "big")
    header = read_batch(batch)
    for read in (raw_records, keys_and_values):
        with suppress(KafkaError):
            for _each in read(batch, header):
                pass
    if header.attributes & 7 == Compression.NONE.value:
        walk_records(bytes(batch[HEADER_SIZE:]), header, max_headers=_MAX_HEADERS, utf8_names=True)
        assert len(list(decode_batch(batch, header))) == max(0, header.records_count)
    else:
        list(decode_batch(batch, header))


def _batches() -> Iterable[bytes]:
    for compression in Compression:
        yield bytes(make_batch(3, compression=compression))
    yield bytes(make_batch([b"", None, b"x" * 300]))


# -- SASL ------------------------------------------------------------------------------------------


def authenticate(data: bytes) -> None:
    """Messages with their lengths before them, to the mechanism that the first byte names.

    Nobody gets in without the password: no seed has a proof for the server's nonce.
    """
    names = sorted(_MECHANISMS)
    session = SaslSession(_MECHANISMS, now_ms=lambda: 1_700_000_000_000)
    session.choose(names[data[0] % len(names)] if data else names[0], raw=False)
    reader = Reader(data, 1)
    while reader.left > 0:
        session.respond(reader.buffer() or b"")
    user = session.user
    assert user is None or user.name == "plain", user


_KEY: Final = ECKey.generate_key("P-256", {"kid": "one"})
_KEYS: Final = KeySet.import_key_set({"keys": [_KEY.as_dict(private=False)]})
_VALIDATE: Final = TokenValidator(TokenRules(), lambda: _KEYS, lambda: None, lambda: 1_700_000_000_000)
_CREDENTIAL: Final = ScramCredential.of_password("SCRAM-SHA-256", _PASSWORD, salt=b"salt")
_MECHANISMS: Final = {
    "DIGEST-MD5": Mechanism(lambda: DigestMd5Server({"digest": _PASSWORD}.get, nonce="nonce")),
    "OAUTHBEARER": Mechanism(lambda: OAuthBearerExchange(_VALIDATE)),
    "PLAIN": Mechanism(lambda: PlainExchange({"plain": _PASSWORD}.get)),
    "SCRAM-SHA-256": Mechanism(
        lambda: ScramExchange(
            "SCRAM-SHA-256",
            {"scram": _CREDENTIAL}.get,
            fake_challenge=lambda _name: FakeChallenge(b"salt", 4096),
            token_of={"token": TokenAccount(_CREDENTIAL, Principal("owner"), 1_800_000_000_000)}.get,
            nonce="nonce",
        )
    ),
}


def _exchanges() -> Iterable[bytes]:
    """For each mechanism, a client that does not know the password."""
    digest = DigestMd5Client("digest", "guess", cnonce="mine")
    challenge = DigestMd5Server(dict[str, str]().get, nonce="nonce").respond(b"")
    yield b"\0" + buffer(b"") + buffer(digest.respond(challenge))
    token = jwt.encode({"alg": "ES256", "kid": "two"}, {"sub": "eve", "exp": 1_800_000_000}, _KEY)
    yield b"\1" + buffer(f"n,a=eve,\1auth=Bearer {token}\1\1".encode()) + buffer(b"\1")
    yield b"\2" + buffer(b"\0plain\0guess")
    for name, is_token in (("scram", False), ("token", False), ("token", True)):
        scram = ScramClient("SCRAM-SHA-256", name, "guess", nonce="mine", is_token=is_token)
        first = scram.first()
        proof = scram.prove(f"r=minenonce,s={base64.b64encode(b'salt').decode()},i=4096")
        yield b"\3" + buffer(first.encode()) + buffer(proof.encode())


def read_token(data: bytes) -> None:
    """Header, claims and signature with line ends between them, before they are encoded in base64."""
    parts = data.split(b"\n", 2)
    token = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    _VALIDATE(token.decode())
    raise AssertionError("a token without a signature was accepted")


def _tokens() -> Iterable[bytes]:
    claims = b'{"sub":"eve","exp":1800000000,"aud":["a",1],"scope":"x y"}'
    for algorithm in (b"ES256", b"none", b"HS256", b"RS256"):
        yield b'{"alg":"%s","kid":"one","typ":"JWT"}\n%s\n%s' % (algorithm, claims, bytes(64))
    yield b'{"alg":"ES256","kid":"two","crit":["exp"],"b64":false}\n[]\n'


def read_certificate(data: bytes) -> None:
    assert isinstance(subject_name(data), str)


def _certificates() -> Iterable[bytes]:
    authority = Authority("fuzzing")
    for name in ("alice", '\u00fc, "quoted" + #more'):
        yield authority.certify(name, ("localhost", "127.0.0.1")).der


# -- ZooKeeper's protocol --------------------------------------------------------------------------


def answer_requests(data: bytes) -> None:
    """Frames of a client with a session: each is answered once, or ends the connection.

    The first byte says whether the server requires a credential. Afterwards the tree is still a tree.
    """
    required = bool(data and data[0] & 1)
    world = World(authentication=Authentication({"ann": "secret"}, is_required=required))
    client = world.client()
    reader = Reader(data, 1)
    while reader.left > 0 and not client.closed:
        message = reader.buffer() or b""
        before = len(client.messages)
        answer(world.service, client, message)
        replies = [each for each in client.messages[before:] if each[4:8] != _EVENT_XID]
        assert len(replies) == 1 or message[:4] == _EVENT_XID, replies
    assert world.bugs == []
    nodes = world.state.tree.nodes
    assert all(path.rpartition("/")[0] in nodes or path.count("/") == 1 for path in nodes if path != "/")


def _zookeeper_requests() -> Iterable[bytes]:
    multi = pack(">ibi", Op.CREATE, 0, -1) + create_body("/m") + pack(">ibi", -1, 1, -1)
    bodies = {
        Op.CREATE: create_body("/a", b"data"),
        Op.CREATE2: create_body("/a/b", flags=3),
        Op.SET_DATA: string("/a") + buffer(b"new") + INT.pack(-1),
        Op.GET_DATA: string("/a") + b"\1",
        Op.EXISTS: string("/b") + b"\1",
        Op.GET_CHILDREN2: string("/") + b"\1",
        Op.GET_ACL: string("/a"),
        Op.SET_ACL: string("/a") + INT.pack(1) + INT.pack(31) + string("sasl") + string("ann") + INT.pack(-1),
        Op.MULTI: multi,
        Op.MULTI_READ: pack(">ibi", Op.GET_DATA, 0, -1) + string("/a") + b"\0" + pack(">ibi", -1, 1, -1),
        Op.SET_WATCHES: set_watches_body(0, ["/a"], ["/b"], ["/"]),
        Op.AUTH: INT.pack(0) + string("digest") + string("ann:secret"),
        Op.SASL: buffer(b""),
        Op.DELETE: string("/a") + INT.pack(-1),
        Op.CLOSE: b"",
    }
    frames = [frame(HEADER.pack(number, op), body) for number, (op, body) in enumerate(bodies.items(), 1)]
    for first in (b"\0", b"\1"):
        yield first + b"".join(frames)
        yield from (first + each for each in frames)


def read_connect(data: bytes) -> None:
    World().client()
    decode_connect(data)


def _connects() -> Iterable[bytes]:
    yield pack(">iqiq", 0, 0, 4000, 0) + buffer(bytes(16)) + b"\0"
    yield pack(">iqiq", 0, 7, 4000, 99) + buffer(b"")


TARGETS: Final = {
    target.name: target
    for target in (
        Target("frame", split_frames, lambda: [b"\3" + frame(b"abc", bytes(70)), b"\0\x7f\xff\xff\xff"]),
        Target("request", read_request, _requests, (ProtocolError,)),
        Target("consumer-protocol", read_consumer_protocol, _subscriptions, (ProtocolError,)),
        Target("record-batch", read_record_batch, _batches, (KafkaError,)),
        Target(
            "sasl",
            authenticate,
            _exchanges,
            (AuthenticationFailed, MalformedRequest),
            words=(
                b"n,,",
                b"=2C",
                b"=3D",
                b'="',
                b"\\",
                b",a=",
                b"\x01auth=Bearer ",
                b"qop=auth",
                b"authzid=",
            ),
        ),
        Target(
            "token",
            read_token,
            _tokens,
            (InvalidToken,),
            words=(b'"crit"', b"[" * 2000, b'{"a":' * 1500, b"9" * 4000),
        ),
        Target("certificate", read_certificate, _certificates, (Malformed,)),
        Target(
            "zookeeper",
            answer_requests,
            _zookeeper_requests,
            (MalformedRequest,),
            words=(b"/a", b"/a/b", b"/"),
        ),
        Target("zookeeper-connect", read_connect, _connects, (MalformedRequest,)),
    )
}
