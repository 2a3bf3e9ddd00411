"""Any bytes as a request: a reply, a refusal or a hang-up, and never anything else."""

from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from coordination.fakes import World, create_body, set_watches_body
from headrace.coordination.embedded.errors import MalformedRequest
from headrace.coordination.embedded.handlers import answer
from headrace.coordination.embedded.jute import INT, string
from headrace.coordination.embedded.requests import Op, decode_connect

valid = st.sampled_from(
    [
        create_body("/a", b"data"),
        create_body("/a/b", flags=3),
        string("/a") + INT.pack(-1),
        string("/a") + b"\1",
        string("/a") + INT.pack(4) + b"data" + INT.pack(-1),
        set_watches_body(0, ["/a"], ["/b"], ["/"], [], []),
        INT.pack(0) + string("digest") + string("ann:secret"),
        pack(">ibi", Op.CREATE, 0, -1) + create_body("/a") + pack(">ibi", -1, 1, -1),
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    body = bytearray(draw(valid))
    for _ in range(draw(st.integers(0, 3))):
        body[draw(st.integers(0, len(body) - 1))] = draw(st.integers(0, 255))
    return bytes(body[: draw(st.integers(0, len(body)))])


@given(st.lists(st.tuples(st.sampled_from(Op), mutated() | st.binary(max_size=60)), max_size=20))
def test_every_request_with_a_header_is_answered_once(requests: list[tuple[Op, bytes]]) -> None:
    world = World()
    for op, body in requests:
        client = world.client()
        replies = [each for each in client.ask(op, body) if each[0] == "reply"]
        assert len(replies) == 1


@given(st.binary(max_size=7))
def test_less_than_a_header_is_malformed(message: bytes) -> None:
    world = World()
    client = world.client()
    try:
        answer(world.service, client, message)
    except MalformedRequest:
        return
    raise AssertionError(message)


@given(st.binary(max_size=80))
def test_any_bytes_as_a_handshake(message: bytes) -> None:
    try:
        decode_connect(message)
    except MalformedRequest:
        return
    assert len(message) >= 28  # four numbers and a length
