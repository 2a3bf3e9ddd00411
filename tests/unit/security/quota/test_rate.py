"""Rates in samples, and the throttle time that Kafka derives from them."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.security.quota.rate import MOST_THROTTLE_MS, SampledRate, Window

WINDOW = Window(samples=11, size_ms=1000)  # Kafka's default


def test_a_rate_within_the_limit_is_not_throttled() -> None:
    rate = SampledRate(WINDOW)
    rate.record(10_000, now_ms=5000)  # 1000 per second over ten complete samples

    assert rate.throttle_ms(1000, now_ms=5000) == 0


def test_the_throttle_time_brings_the_rate_down_to_the_limit() -> None:
    rate = SampledRate(WINDOW)
    rate.record(15_000, now_ms=0)

    # 1500 per second over 10 s: after 5 s more, 15,000 in 15 s are 1000 per second.
    assert rate.throttle_ms(1000, now_ms=0) == 5000


def test_the_sample_in_progress_makes_the_window_longer() -> None:
    rate = SampledRate(WINDOW)
    rate.record(10_000, now_ms=0)
    rate.record(5_000, now_ms=500)

    # 15,000 in 10.5 s; they are within the limit after 15 s.
    assert rate.throttle_ms(1000, now_ms=500) == 4500


def test_old_samples_do_not_count() -> None:
    rate = SampledRate(WINDOW)
    rate.record(1_000_000, now_ms=0)

    assert rate.throttle_ms(1000, now_ms=10_999) > 0
    assert not rate.is_idle(10_999)
    assert rate.throttle_ms(1000, now_ms=11_000) == 0
    assert rate.is_idle(11_000)


def test_what_is_taken_back_does_not_count() -> None:
    rate = SampledRate(WINDOW)
    rate.record(50_000, now_ms=0)
    rate.record(-50_000, now_ms=0)

    assert rate.throttle_ms(1000, now_ms=0) == 0


def test_a_throttle_time_fits_in_the_protocol() -> None:
    rate = SampledRate(WINDOW)
    rate.record(1e18, now_ms=0)

    assert rate.throttle_ms(1, now_ms=0) == MOST_THROTTLE_MS


@given(st.lists(st.integers(0, 4000), max_size=100))
def test_memory_is_bounded_by_the_number_of_samples(pauses: list[int]) -> None:
    rate = SampledRate(WINDOW)
    now_ms = 0
    for pause in pauses:
        now_ms += pause
        rate.record(1, now_ms)

    assert len(rate._samples) <= WINDOW.samples + 1
