"""However a stream is cut into reads, the same frames come out of it."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.frame import FrameBuffer, encode_frame

SMALL = st.binary(max_size=40)
LARGE = st.integers(60_000, 300_000).map(lambda size: (b"0123456789abcdef" * (size // 16 + 1))[:size])


@given(st.lists(SMALL | LARGE, max_size=8), st.lists(st.integers(1, 70_000), max_size=30))
def test_any_split_of_the_stream_gives_the_same_frames(payloads: list[bytes], reads: list[int]) -> None:
    stream = b"".join(b"".join(encode_frame(payload[:5], [payload[5:]])) for payload in payloads)
    buffer = FrameBuffer(max_frame_bytes=1 << 20)
    frames: list[memoryview] = []
    sizes = iter(reads)
    while stream:
        room = buffer.get_buffer()
        count = min(len(room), len(stream), next(sizes, 1 << 20))
        room[:count] = stream[:count]
        frames += buffer.received(count)
        stream = stream[count:]
    assert frames == payloads  # also the early ones: nothing was written over them
