"""`headrace broker list`, `describe` and `unregister`: the brokers of a cluster, as others see them."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from headrace.cli import completing
from headrace.cli.session import UNKNOWN, Session, options, table, together
from headrace.cli.texts import size
from headrace.client.admin.topics import Config
from headrace.client.cluster.log_dirs import LogDir, read_log_dirs
from headrace.client.cluster.reading import SILENCE_S
from headrace.client.cluster.status import UP, Broker
from headrace.client.errors import ClientError
from headrace.client.wire.brokers import Brokers
from headrace.protocol.schema.unregister_broker import UnregisterBrokerRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

_id = click.argument("broker_id", metavar="ID", type=click.IntRange(0), shell_complete=completing.brokers)


@click.command("list")
@options
@click.pass_obj
def list_(session: Session) -> None:
    """List the brokers with what is on their disks:  headrace broker list"""
    found = session.cluster.status().brokers
    disks = _disks(session)
    rows = [asdict(each) | {"log_dirs": disks.get(each.id, ())} for each in found]
    session.show(rows, lambda: _listed(found, disks))


@click.command()
@_id
@click.option("--all", "everything", is_flag=True, help="Settings that are as by default, too.")
@options
@click.pass_obj
def describe(session: Session, broker_id: int, *, everything: bool) -> None:
    """Show a broker, its disk and its settings:  headrace broker describe 1"""
    brokers = {each.id: each for each in session.cluster.status().brokers}
    if broker_id not in brokers:
        raise ClientError(f"there is no broker {broker_id}, only {', '.join(map(str, brokers))}")
    found = brokers[broker_id]
    configs = session.admin.broker_configs(broker_id) if found.state == UP else []
    shown = [each for each in configs if everything or not each.is_default]
    log_dirs = _disks(session).get(broker_id, ())
    result = asdict(found) | {"log_dirs": log_dirs, "settings": shown}
    session.show(result, lambda: _described(found, log_dirs, shown))


@click.command()
@_id
@options
@click.pass_obj
def unregister(session: Session, broker_id: int) -> None:
    """Make sure that a broker is gone for good:  headrace broker unregister 3

    Refused while it runs, and while partitions are on it: `headrace cluster drain 3 --wait` moves those.
    """
    with Brokers(session.bootstrap) as brokers:
        brokers.controller(UnregisterBrokerRequest(broker_id=broker_id))
    session.show({"unregistered": broker_id}, f"broker {broker_id} is gone, and nothing is left on it")


def _disks(session: Session) -> dict[int, tuple[LogDir, ...]]:
    brokers = Brokers(session.bootstrap, answer_s=SILENCE_S)
    return read_log_dirs(brokers, brokers.nodes())


def _listed(brokers: Sequence[Broker], disks: dict[int, tuple[LogDir, ...]]) -> "RenderableType":
    rows = []
    for each in brokers:
        there = disks.get(each.id, ())
        rows.append(
            (
                each.id,
                UNKNOWN if each.host is None else f"{each.host}:{each.port}",
                UNKNOWN if each.rack is None else each.rack,
                f"{each.state}, controller" if each.controller else each.state,
                each.leads,
                each.follows,
                size(sum(directory.size_bytes for directory in there)) if there else UNKNOWN,
                size(min(directory.usable_bytes or 0 for directory in there)) if there else UNKNOWN,
            )
        )
    return table(["broker", "address", "rack", "state", "leads", "follows", "logs", "disk free"], rows)


def _described(found: Broker, log_dirs: Sequence[LogDir], settings: Sequence[Config]) -> "RenderableType":
    facts = {
        "address": UNKNOWN if found.host is None else f"{found.host}:{found.port}",
        "rack": found.rack or UNKNOWN,
        "state": f"{found.state}, controller" if found.controller else found.state,
        "process": UNKNOWN if found.pid is None else found.pid,
        "partitions": f"leads {found.leads:,}, follows {found.follows:,}",
    }
    for each in log_dirs:
        facts[f"logs in {each.path}"] = f"{size(each.size_bytes)}; disk {_disk(each)}"
    parts: list[RenderableType] = [table([f"broker {found.id}", ""], facts.items())]
    if settings:
        rows = [(each.name, each.value, each.source) for each in settings]
        parts.append(table(["setting", "value", "from"], rows))
    return together(parts)


def _disk(directory: LogDir) -> str:
    if directory.total_bytes is None or directory.usable_bytes is None:
        return UNKNOWN
    return f"{size(directory.usable_bytes)} free of {size(directory.total_bytes)}"
