"""What figures of a load come to: no process, no clock."""

import pytest

from headrace.cli.bench import limit_sentence
from headrace.cli.bench_cpu import limited_by
from headrace.client.load.figures import Latency, Task, Used, latency, limit, throughput, values

RESTING = Used(cores=0.2, busiest=0.1)
BUSY = Used(cores=1.2, busiest=0.95)
TASK = Task(
    phase="produce", bootstrap="h:1", topic="t", partitions=(0, 1), record_size=100, seconds=2.0, acks="1"
)


@pytest.mark.parametrize(
    ("clients", "brokers", "machine", "found"),
    [
        (BUSY, RESTING, 0.5, "client"),
        (BUSY, None, 0.5, "client"),
        (RESTING, BUSY, 0.5, "broker"),
        (RESTING, RESTING, 0.99, "machine"),
        (RESTING, RESTING, 0.5, "unknown"),
        (RESTING, None, 0.5, "unknown"),
        (Used(cores=2.0, busiest=0.9), BUSY, 1.0, "broker"),
    ],
)
def test_the_limit_is_whoever_never_rests(
    clients: Used, brokers: Used | None, machine: float, found: str
) -> None:
    assert limit(clients, brokers, machine) == found


@pytest.mark.parametrize(
    ("clients_cores", "brokers_cores", "machine", "found"),
    [
        (0.3, 0.28, 0.95, "others"),  # they use 0.58 of two cores
        (0.9, 0.9, 0.95, "machine"),
        (0.8, 0.7, 0.95, "machine"),  # the kernel works for them, too
        (1.8, None, 0.95, "machine"),
        (0.5, None, 0.95, "others"),
        (0.3, 0.28, 0.5, "unknown"),
    ],
)
def test_a_machine_that_others_use_up_is_not_used_up_by_clients_and_brokers(
    clients_cores: float, brokers_cores: float | None, machine: float, found: str
) -> None:
    clients = Used(cores=clients_cores, busiest=0.5)
    brokers = None if brokers_cores is None else Used(cores=brokers_cores, busiest=0.5)
    measured = throughput(TASK, 1, 1.0, clients=clients, brokers=brokers, machine=machine)
    assert limited_by(measured, cores=2).limit == found


def test_clients_that_use_a_machine_up_without_brokers_do_not_share_it_with_them() -> None:
    alone = throughput(TASK, 1, 1.0, clients=Used(cores=1.9, busiest=0.5), brokers=None, machine=0.99)
    shared = throughput(TASK, 1, 1.0, clients=RESTING, brokers=Used(cores=1.7, busiest=0.5), machine=0.99)
    assert "clients and brokers" not in limit_sentence(alone)
    assert "clients and brokers" in limit_sentence(shared)


def test_rates_are_records_and_bytes_a_second() -> None:
    found = throughput(TASK, 1000, 2.0, clients=RESTING, brokers=None, machine=0.1)
    assert (found.records_per_s, found.bytes_per_s) == (500.0, 50_000.0)
    nothing = throughput(TASK, 0, 0.0, clients=RESTING, brokers=None, machine=0.1)
    assert nothing.records_per_s == 0.0


def test_percentiles_are_records_that_there_were() -> None:
    assert latency([float(each) for each in range(1000, 0, -1)]) == Latency(
        p50=500.0, p95=950.0, p99=990.0, p999=999.0, max=1000.0
    )
    assert latency([7.0]) == Latency(p50=7.0, p95=7.0, p99=7.0, p999=7.0, max=7.0)
    assert latency([]) is None


def test_a_task_arrives_as_it_was_sent() -> None:
    assert Task.decode(TASK.encode()) == TASK


def test_records_have_the_size_asked_for_and_differ() -> None:
    made = list(values(100, 50))
    assert {len(each) for each in made} == {100}
    assert len(set(made)) == 50
    assert made == list(values(100, 50))
