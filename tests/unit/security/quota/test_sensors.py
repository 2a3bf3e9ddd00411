"""Sensors of clients: shared by name, removed when they are idle, and never too many."""

from headrace.security.quota.rate import SampledRate, Window
from headrace.security.quota.sensors import Sensors

WINDOW = Window(samples=10, size_ms=1000)


def sensors(most: int = 100) -> Sensors[SampledRate]:
    return Sensors(lambda: SampledRate(WINDOW), most)


def test_a_client_keeps_its_sensor_while_it_is_active() -> None:
    found = sensors()
    first = found.use(("alice", None), 0)
    first.record(1, 0)

    assert found.use(("alice", None), 9_000) is first
    assert found.use(("alice", "app"), 9_000) is not first


def test_sensors_of_quiet_clients_are_removed() -> None:
    found = sensors()
    for number in range(50):
        found.use((None, str(number)), 0).record(1, 0)
    assert len(found) == 50

    for _ in range(25):
        found.use(("alice", None), 10_000).record(1, 10_000)

    assert len(found) == 1


def test_a_client_with_ever_new_client_ids_cannot_fill_the_memory() -> None:
    found = sensors(most=10)
    for number in range(1_000):
        found.use((None, str(number)), 0).record(1, 0)

    assert len(found) == 10
    kept = found.use((None, "999"), 0)
    assert kept.throttle_ms(0.01, 0) > 0  # the newest ones are kept
