"""How long a process waits to be started again."""

from headrace.cli.machine.supervisor import LONGEST_DELAY_S, PROVEN_S, Backoff


def test_the_first_time_there_is_no_wait_and_then_it_doubles() -> None:
    backoff = Backoff()
    assert [backoff.after(0.1) for _ in range(5)] == [0, 0.5, 1, 2, 4]


def test_the_wait_has_an_end() -> None:
    backoff = Backoff()
    assert max(backoff.after(0.1) for _ in range(50)) == LONGEST_DELAY_S


def test_a_process_that_has_run_for_long_is_started_again_at_once() -> None:
    backoff = Backoff()
    for _ in range(5):
        backoff.after(1)
    assert [backoff.after(PROVEN_S), backoff.after(1)] == [0, 0.5]
