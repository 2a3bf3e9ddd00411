from headrace.protocol.buffer_pool import MAX_SHARED, SMALLEST, BufferPool, SharedBuffers


def test_sizes_are_rounded_up_to_powers_of_two() -> None:
    pool = BufferPool()

    assert [len(pool.take(size)) for size in (1, SMALLEST, SMALLEST + 1, 1 << 20)] == [
        SMALLEST,
        SMALLEST,
        2 * SMALLEST,
        1 << 20,
    ]


def test_a_buffer_given_back_is_handed_out_again() -> None:
    pool = BufferPool()
    buffer = pool.take(SMALLEST)
    pool.give(buffer)

    assert pool.take(SMALLEST) is buffer
    assert pool.take(SMALLEST) is not buffer


def test_a_buffer_with_a_view_of_it_is_let_go_instead() -> None:
    pool = BufferPool()
    buffer = pool.take(SMALLEST)
    view = memoryview(buffer)[10:20]
    pool.give(buffer)

    assert pool.take(SMALLEST) is not buffer
    assert len(view) == 10
    assert len(buffer) == SMALLEST


def test_a_pool_keeps_no_more_than_it_may() -> None:
    pool = BufferPool(max_bytes=2 * SMALLEST)
    buffers = [pool.take(SMALLEST) for _ in range(3)]
    for buffer in buffers:
        pool.give(buffer)

    kept = [pool.take(SMALLEST) for _ in range(3)]
    assert sum(any(buffer is mine for mine in buffers) for buffer in kept) == 2


def test_a_shared_buffer_is_used_again_when_nobody_holds_a_view_of_it() -> None:
    shared = SharedBuffers(BufferPool())
    first = shared.take(1_000_000)
    first[:5] = b"first"
    part = first[1:3]
    first.release()

    other = shared.take(1_000_000)
    other[:5] = b"other"
    assert bytes(part) == b"ir"  # a view of a part keeps the buffer

    part.release()
    again = shared.take(1_000_000)
    assert bytes(again[:5]) == b"first"


def test_shared_buffers_are_bounded_and_views_beyond_the_bound_stay_valid() -> None:
    shared = SharedBuffers(BufferPool())
    views = [shared.take(SMALLEST) for _ in range(2 * MAX_SHARED)]
    for number, view in enumerate(views):
        view[0] = number

    assert len(shared._shared) == MAX_SHARED
    assert [view[0] for view in views] == list(range(2 * MAX_SHARED))
