"""What a form asks for."""

import pytest

from headrace.client.errors import ClientError
from headrace.client.records.one_by_one import Start
from headrace.gateway.console.views.messages import SCANNED, read_form


@pytest.mark.parametrize(
    "fields", [{}, {"text": "error"}, {"key": "k", "limit": "500"}, {"where": "nonsense"}]
)
def test_the_newest_are_asked_for_if_nothing_is_said_where_to_begin(fields: dict[str, str]) -> None:
    assert read_form(fields).start() == Start(last=SCANNED)


def test_a_time_is_on_the_readers_clock() -> None:
    noon = {"where": "time", "time": "2026-11-15T12:00"}
    assert read_form({**noon, "zone": "0"}).time_ms() == 1_794_744_000_000
    assert read_form({**noon, "zone": "60"}).time_ms() == 1_794_744_000_000 - 3_600_000
    assert read_form({**noon, "zone": "nonsense"}).time_ms() == 1_794_744_000_000
    assert read_form({"where": "time", "time": "1794744000000"}).time_ms() == 1_794_744_000_000
    assert read_form({"where": "time", "time": "2026-11-15T12:00:00+02:00", "zone": "60"}).time_ms() == (
        1_794_744_000_000 - 7_200_000
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"where": "offset", "offset": "-1"},
        {"where": "offset", "offset": "9" * 30},
        {"where": "offset", "offset": "٣"},
        {"where": "time", "time": "soon"},
        {"where": "time", "time": ""},
    ],
)
def test_what_is_no_offset_and_no_time_is_refused_with_a_sentence(fields: dict[str, str]) -> None:
    with pytest.raises(ClientError, match=r"\w+ \w+"):
        read_form(fields).start()


def test_a_partition_that_is_no_number_is_refused() -> None:
    with pytest.raises(ClientError, match="the partition is 'x': expected a whole number"):
        read_form({"partition": "x"})


def test_only_what_a_field_for_times_can_show_is_shown_in_it() -> None:
    assert read_form({"time": "2026-11-15T12:00:01"}).time_field == "2026-11-15T12:00:01"
    assert read_form({"time": "yesterday"}).time_field == ""
