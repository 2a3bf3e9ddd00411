"""The token bucket of controller mutations."""

from headrace.security.quota.rate import TokenBucket, Window

WINDOW = Window(samples=10, size_ms=1000)


def test_a_burst_of_the_whole_window_is_free() -> None:
    bucket = TokenBucket(WINDOW)
    bucket.record(50, limit=5, now_ms=123)

    assert bucket.throttle_ms(5, now_ms=123) == 0


def test_a_debt_is_paid_back_at_the_rate_of_the_quota() -> None:
    bucket = TokenBucket(WINDOW)
    bucket.record(110, limit=5, now_ms=0)

    assert bucket.throttle_ms(5, now_ms=0) == 12_000
    assert bucket.throttle_ms(5, now_ms=4_000) == 8_000
    assert bucket.throttle_ms(5, now_ms=12_000) == 0


def test_a_bucket_is_idle_when_it_is_full_again() -> None:
    bucket = TokenBucket(WINDOW)
    assert bucket.is_idle(0)

    bucket.record(10, limit=5, now_ms=0)

    assert not bucket.is_idle(1_999)
    assert bucket.is_idle(2_000)


def test_a_quota_that_changes_applies_at_once() -> None:
    bucket = TokenBucket(WINDOW)
    bucket.record(60, limit=5, now_ms=0)

    assert bucket.throttle_ms(10, now_ms=0) == 1_000
