"""What a second client notices of an attack: its latency while the broker is quiet, and under attack.

    make attacks                             everything, about eight minutes
    make attacks ARGS="--only loris"         attacks whose name matches the pattern
    make attacks ARGS="--seconds 4"          shorter rounds

One broker with default settings and no quotas runs on the first core, and everything else on the last one:
the victim, whose latency is measured, and the attackers in processes of their own. The victim runs before the
attackers, so that they take the broker's time but not the victim's. Quiet rounds and rounds under attack
alternate, and each figure is of all rounds together. Expected: the 99th percentile under attack is at most
three times the quiet one. On a machine with other load, read the rows with clock `cpu`: the CPU time that the
broker used from the request to the response.
"""

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Final

from attacks import attackers
from attacks.attackers import Attacker
from attacks.figures import EXPECTED, HEADING, Latencies, Row, added, rows
from attacks.launch import under_attack
from attacks.target import Attacked, attacked
from attacks.victim import Victim, run_first, victim
from compare import process

SETTLE_S: Final = 0.5  # between the beginning of an attack and the first measured request, and after its end
ATTACKS: Final[dict[str, Attacker]] = {
    "greedy producer, 1 MiB batches": attackers.greedy_producer,
    "greedy producer, 100 B batches": attackers.greedy_small_batches,
    "flood of connections": attackers.plain_flood,
    "flood of TLS handshakes": attackers.tls_flood,
    "slow loris, before a frame": attackers.loris_before_frame,
    "slow loris, in a frame": attackers.loris_in_frame,
    "slow loris, before the TLS handshake": attackers.loris_before_handshake,
    "slow loris, before SASL is finished": attackers.loris_before_sasl,
}


def main() -> None:
    signal.signal(signal.SIGTERM, _terminated)
    arguments = _arguments()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    settings = dict(each.split("=", 1) for each in arguments.set)
    with (
        tempfile.TemporaryDirectory(prefix="attacks-", dir=arguments.directory) as name,
        attacked(Path(name), cores[0], settings) as broker,
        victim(broker.target.plain, broker.victims_topic, broker.process.pid) as client,
    ):
        print(_conditions(broker, cores), HEADING, sep="\n", flush=True)
        client.measure(arguments.seconds)  # warm-up
        found = [row for attack in _chosen(arguments) for row in _run(attack, broker, client, arguments)]
    print(
        f"\n{sum(row.holds for row in found)} of {len(found)} are within {EXPECTED:.0f} times the quiet p99"
    )


def _conditions(broker: Attacked, cores: list[int]) -> str:
    first = (
        "runs first" if run_first() else "may have to wait for other processes (no permission for SCHED_FIFO)"
    )
    return (
        f"the broker, process {broker.process.pid}, is on core {cores[0]}, clients are on core {cores[-1]}, "
        f"the victim {first}; load average {os.getloadavg()[0]:.1f}"
    )


def _chosen(arguments: argparse.Namespace) -> list[str]:
    return [attack for attack in ATTACKS if re.search(arguments.only, attack)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make attacks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="PATTERN", help="attacks whose name matches")
    parser.add_argument("--seconds", type=float, default=8.0, help="of a round; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="quiet and under attack; default: %(default)s")
    parser.add_argument("--directory", type=Path, help="for the broker's data; temporary if not given")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="broker settings")
    return parser.parse_args()


def _run(attack: str, broker: Attacked, client: Victim, arguments: argparse.Namespace) -> Iterator[Row]:
    """Alternate between quiet rounds and rounds under attack; print and yield what the client noticed."""
    quiet, during = [], []
    for _ in range(arguments.rounds):
        quiet.append(client.measure(arguments.seconds))
        during.append(_attacked_round(attack, broker, client, arguments.seconds))
    for row in rows(attack, added(quiet), added(during)):
        print(row, flush=True)
        yield row


def _attacked_round(attack: str, broker: Attacked, client: Victim, seconds: float) -> Latencies:
    pid = broker.process.pid
    with under_attack(ATTACKS[attack], broker.target, seconds + 2 * SETTLE_S) as report:
        time.sleep(SETTLE_S)
        cpu, began = process.cpu_seconds(pid), time.perf_counter()
        found = client.measure(seconds)
        share = (process.cpu_seconds(pid) - cpu) / (time.perf_counter() - began)
    time.sleep(SETTLE_S)
    print(f"  {attack}: {report.text}; the broker used {share:.0%} of its core", flush=True)
    return found


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    sys.exit("terminated")  # as an exception, so that the broker is stopped


if __name__ == "__main__":
    main()
