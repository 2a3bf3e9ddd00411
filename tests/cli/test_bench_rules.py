"""The figures of a bench and its records: no process, no clock."""

from headrace.cli.bench import Latency, values


def test_percentiles_are_records_that_there_were() -> None:
    assert Latency.of([float(each) for each in range(1000, 0, -1)]) == Latency(
        p50=500.0, p95=950.0, p99=990.0, p999=999.0, max=1000.0
    )
    assert Latency.of([7.0]) == Latency(p50=7.0, p95=7.0, p99=7.0, p999=7.0, max=7.0)
    assert Latency.of([]) is None


def test_records_have_the_size_asked_for_and_differ() -> None:
    made = list(values(100, 50))
    assert {len(each) for each in made} == {100}
    assert len(set(made)) == 50
    assert made == list(values(100, 50))
