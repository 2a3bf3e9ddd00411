"""Figures, sizes, spans and times, as pages write them."""

import pytest

from headrace.gateway.console import formats


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, formats.UNKNOWN),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1_572_864, "1.5 MiB"),
        (2**60, "1024 PiB"),
    ],
)
def test_sizes_have_the_unit_that_fits(value: int | None, written: str) -> None:
    assert formats.size(value) == written


@pytest.mark.parametrize(
    ("milliseconds", "written"),
    [
        (0, "0 ms"),
        (604_800_000, "7 d"),
        (5_400_000, "1 h 30 min"),
        (90_061_001, "1 d 1 h"),
        (None, formats.UNKNOWN),
    ],
)
def test_spans_have_their_two_largest_units(milliseconds: int, written: str) -> None:
    assert formats.span(milliseconds) == written


@pytest.mark.parametrize(
    ("name", "value", "means"),
    [
        ("retention.ms", "604800000", "7 d"),
        ("retention.bytes", "-1", "no limit"),
        ("flush.ms", str(2**63 - 1), "no limit"),
        ("segment.bytes", "1073741824", "1.0 GiB"),
        ("log.cleaner.dedupe.buffer.size", "134217728", "128 MiB"),
        ("log.flush.interval.messages", str(2**63 - 1), "no limit"),
        ("leader.replication.throttled.rate", str(2**63 - 1), "no limit"),
        ("leader.replication.throttled.rate", "10485760", "10.0 MiB per second"),
        ("group.max.size", str(2**31 - 1), "no limit"),
        ("group.consumer.max.size", "4096", ""),
        ("min.insync.replicas", "2", ""),
        ("cleanup.policy", "delete", ""),
        ("retention.ms", None, ""),
    ],
)
def test_a_setting_is_explained_where_its_figure_is_hard_to_read(
    name: str, value: str | None, means: str
) -> None:
    assert formats.meaning(name, value) == means


def test_times_are_written_in_utc_and_what_is_no_time_is_unknown() -> None:
    assert formats.stamp(1_700_000_000_123) == "2023-11-14 22:13:20.123"
    assert formats.iso(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    for nonsense in (None, -1, 2**63 - 1):
        assert formats.stamp(nonsense) == formats.UNKNOWN
        assert formats.iso(nonsense) == ""


def test_a_name_is_one_segment_of_a_path_whatever_is_in_it() -> None:
    assert formats.segment("a/b?c#d <e>") == "a%2Fb%3Fc%23d%20%3Ce%3E"
