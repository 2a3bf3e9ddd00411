from headrace.protocol.buffer_pool import SMALLEST, BufferPool


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
