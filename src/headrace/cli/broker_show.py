"""`headrace broker list`, `describe`, `ready` and `unregister`: the brokers of a running cluster."""

from collections.abc import Sequence
from dataclasses import asdict

import click

from headrace.cli import completion
from headrace.cli.cluster import address, locations, state
from headrace.cli.config import settings_table
from headrace.cli.support.output import UNKNOWN, Drawable, count, size, table, together
from headrace.cli.support.session import Session, confirm, options, yes_option
from headrace.client.admin.topics import Config
from headrace.client.cluster.log_dirs import LogDir, read_log_dirs
from headrace.client.cluster.reading import SILENCE_S
from headrace.client.cluster.status import UP, Broker, not_ready
from headrace.client.errors import ClientError
from headrace.client.wire.brokers import Brokers
from headrace.protocol.schema.unregister_broker import UnregisterBrokerRequest

_id = click.argument("broker_id", metavar="ID", type=click.IntRange(0), shell_complete=completion.brokers)


@click.command("list")
@options
def list_(session: Session) -> None:
    """List the brokers and the size of their logs:  headrace broker list"""
    found = session.cluster.status().brokers
    disks = _disks(session)
    rows = [asdict(each) | {"log_dirs": disks.get(each.id, ())} for each in found]
    session.show(rows, lambda: _listed(found, disks))


@click.command()
@_id
@click.option("--all", "everything", is_flag=True, help="Include settings that have their default.")
@options
def describe(session: Session, broker_id: int, *, everything: bool) -> None:
    """Show a broker, its disk and its settings:  headrace broker describe 1"""
    brokers = {broker.id: broker for broker in session.cluster.status().brokers}
    if broker_id not in brokers:
        raise ClientError(f"there is no broker {broker_id}, only {', '.join(map(str, brokers))}")
    found = brokers[broker_id]
    configs = session.admin.broker_configs(broker_id) if found.state == UP else []
    shown = [config for config in configs if everything or not config.is_default]
    log_dirs = _disks(session).get(broker_id, ())
    result = asdict(found) | {"log_dirs": log_dirs, "settings": shown}
    session.show(result, lambda: _described(found, log_dirs, shown))


@click.command()
@_id
@options
def ready(session: Session, broker_id: int) -> None:
    """Succeed if a broker is up, with all its replicas in sync:  headrace broker ready 1

    For readiness probes and rolling restarts: the next broker may be stopped when this succeeds.
    """
    status = session.cluster.status()
    if (why := not_ready(status, broker_id)) is not None:
        raise ClientError(f"broker {broker_id} is not ready: {why}")
    replicas = next(broker.leads + broker.follows for broker in status.brokers if broker.id == broker_id)
    text = f"broker {broker_id} is ready: {count(replicas, 'replica')} in sync"
    session.show({"ready": broker_id, "replicas": replicas}, text)


@click.command()
@_id
@yes_option
@options
def unregister(session: Session, broker_id: int, *, yes: bool) -> None:
    """Remove a stopped broker for good:  headrace broker unregister 3

    Refused while the broker runs or has partitions: `headrace cluster drain 3 --wait` moves them away.
    """
    question = f"Remove broker {broker_id} from the cluster for good?"
    confirm(question, action="to remove the broker", declined="nothing was removed", yes=yes)
    session.brokers.controller(UnregisterBrokerRequest(broker_id=broker_id))
    session.show({"unregistered": broker_id}, f"unregistered broker {broker_id}: it has no replicas")


def _disks(session: Session) -> dict[int, tuple[LogDir, ...]]:
    brokers = Brokers(session.connection, answer_s=SILENCE_S)
    return read_log_dirs(brokers, brokers.nodes())


def _listed(brokers: Sequence[Broker], disks: dict[int, tuple[LogDir, ...]]) -> Drawable:
    rows, where = [], locations(brokers)
    for each, *places in zip(brokers, *where.values(), strict=True):
        log_dirs = disks.get(each.id, ())
        logs = size(sum(directory.size_bytes for directory in log_dirs)) if log_dirs else None
        free = size(min(directory.usable_bytes or 0 for directory in log_dirs)) if log_dirs else None
        rows.append((each.id, address(each), *places, state(each), each.leads, each.follows, logs, free))
    return table(["broker", "address", *where, "state", "leads", "follows", "logs", "disk free"], rows)


def _described(found: Broker, log_dirs: Sequence[LogDir], settings: Sequence[Config]) -> Drawable:
    facts = {
        "address": address(found),
        "rack": found.rack,
        "node": found.node,
        "state": state(found),
        "process": found.pid,
        "partitions": f"leads {found.leads:,}, follows {found.follows:,}",
    }
    for log_dir in log_dirs:
        disk = UNKNOWN
        if log_dir.total_bytes is not None and log_dir.usable_bytes is not None:
            disk = f"{size(log_dir.usable_bytes)} free of {size(log_dir.total_bytes)}"
        facts[f"logs in {log_dir.path}"] = f"{size(log_dir.size_bytes)}; disk {disk}"
    parts = [table([f"broker {found.id}", ""], facts.items())]
    return together([*parts, settings_table(settings)] if settings else parts)
