import tracemalloc

import pytest

from headrace.protocol.buffer_pool import BufferPool
from headrace.protocol.errors import ProtocolError
from headrace.protocol.frame import CHUNK_BYTES, FrameBuffer, encode_frame


def feed(buffer: FrameBuffer, data: bytes) -> list[memoryview]:
    """Let `data` arrive, in as many reads as the buffer has it."""
    frames = []
    while data:
        room = buffer.get_buffer()
        count = min(len(room), len(data))
        room[:count] = data[:count]
        frames += buffer.received(count)
        data = data[count:]
    return frames


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def test_many_small_frames_are_slices_of_one_buffer() -> None:
    frames = feed(FrameBuffer(1000), framed(b"one") + framed(b"") + framed(b"three"))
    assert frames == [b"one", b"", b"three"]
    assert frames[0].obj is frames[2].obj


def test_a_frame_is_writable_in_place() -> None:
    (frame,) = feed(FrameBuffer(1000), framed(b"batch"))
    frame[0:1] = b"c"
    assert bytes(frame) == b"catch"


def test_frames_keep_their_bytes_while_more_arrive() -> None:
    buffer = FrameBuffer(1 << 20)
    kept = [feed(buffer, framed(bytes([i]) * 3000))[0] for i in range(200)]
    assert [frame[0] for frame in kept] == list(range(200))
    assert all(frame == bytes([i]) * 3000 for i, frame in enumerate(kept))


def test_a_frame_larger_than_a_chunk_comes_out_in_one_piece() -> None:
    payload = bytes(range(256)) * 4096
    assert feed(FrameBuffer(1 << 20), framed(b"small") + framed(payload) + framed(b"next")) == [
        b"small",
        payload,
        b"next",
    ]


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_a_size_over_the_limit_or_negative_is_refused(size: int) -> None:
    with pytest.raises(ProtocolError, match=f"a frame of {size} bytes exceeds the limit of 1000"):
        feed(FrameBuffer(1000), size.to_bytes(4, "big", signed=True))


def test_a_frame_of_exactly_the_limit_is_taken() -> None:
    assert feed(FrameBuffer(1000), framed(bytes(1000))) == [bytes(1000)]


def test_a_claim_of_100_mb_costs_no_more_than_a_chunk() -> None:
    tracemalloc.start()
    try:
        buffer = FrameBuffer(200 << 20)
        feed(buffer, (100 << 20).to_bytes(4, "big") + b"ten bytes!")
        buffer.get_buffer()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * CHUNK_BYTES


def test_memory_grows_with_what_has_arrived_not_with_what_was_claimed() -> None:
    buffer = FrameBuffer(200 << 20)
    feed(buffer, (100 << 20).to_bytes(4, "big") + bytes(CHUNK_BYTES - 4))
    assert len(buffer.get_buffer()) < 8 * CHUNK_BYTES


def test_a_quiet_connection_keeps_no_large_buffer() -> None:
    tracemalloc.start()
    try:
        buffer = FrameBuffer(16 << 20, BufferPool(max_bytes=0))
        feed(buffer, framed(bytes(8 << 20)))
        buffer.settle()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < CHUNK_BYTES


def test_a_quiet_connection_gives_its_buffer_back_unless_a_frame_has_begun() -> None:
    pool = BufferPool()
    buffer = FrameBuffer(16 << 20, pool)
    feed(buffer, framed(b"whole"))
    buffer.rest()
    assert buffer.capacity == 0

    feed(buffer, framed(b"begun")[:6])
    buffer.rest()
    assert buffer.capacity == CHUNK_BYTES
    (frame,) = feed(buffer, framed(b"begun")[6:])
    assert bytes(frame) == b"begun"


def test_a_buffer_that_the_event_loop_holds_while_it_tells_of_it_serves_again_afterwards() -> None:
    buffer = FrameBuffer(16 << 20, BufferPool())
    room = buffer.get_buffer()
    used = room.obj
    room[:] = framed(bytes(CHUNK_BYTES - 4))
    buffer.received(CHUNK_BYTES)
    buffer.settle()  # comes to nothing: `room` is a view of it
    del room

    assert buffer.get_buffer().obj is used


def test_a_buffer_serves_again_once_its_frames_have_been_let_go() -> None:
    pool = BufferPool()
    buffer = FrameBuffer(16 << 20, pool)
    feed(buffer, framed(bytes(1 << 20)))
    buffer.settle()
    used = pool.take(1 << 20)
    pool.give(used)

    room = buffer.get_buffer()
    room[:4] = (1 << 20).to_bytes(4, "big")
    buffer.received(4)

    assert buffer.get_buffer().obj is used


def test_a_frame_that_is_held_is_never_written_over() -> None:
    buffer = FrameBuffer(16 << 20)
    held: list[memoryview] = []
    sent = [bytes([number]) * (200_000 + number) for number in range(20)]
    for content in sent:
        data = framed(content)
        while data:
            room = buffer.get_buffer()
            count = min(len(room), len(data))
            room[:count] = data[:count]
            held += buffer.received(count)
            data = data[count:]
        buffer.settle()

    assert [bytes(frame) for frame in held] == sent


def test_a_frame_is_encoded_without_copying_its_body() -> None:
    records = memoryview(b"records")
    head, *body = encode_frame(b"head", [b"12", records])
    assert head == b"\x00\x00\x00\x0dhead"
    assert body[1] is records
