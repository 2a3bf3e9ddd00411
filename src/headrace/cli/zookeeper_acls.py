"""`headrace zookeeper secure` and `unsecure`: the ACLs of a cluster's existing znodes."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from headrace.broker.settings.config import BrokerConfig
from headrace.broker.settings.setting import InvalidSetting
from headrace.cli.broker import load_settings, set_option
from headrace.cli.machine.zookeeper_state import connected
from headrace.cli.support.session import Session, confirm, existing_file, json_option, pairs, yes_option
from headrace.coordination.znode_acls import reset_acls


def _options(function: Callable[..., None]) -> Any:
    config = click.option(
        "--config",
        "file",
        type=existing_file,
        help="The properties file of a broker: zookeeper.connect, and the user in zookeeper.sasl.jaas.file.",
    )
    return config(set_option(json_option(function)))


@click.command()
@_options
def secure(session: Session, *, file: Path | None, sets: Sequence[str]) -> None:
    """Let only the brokers' user change existing znodes:  headrace zookeeper secure --config FILE

    Run it after all brokers have been restarted with zookeeper.set.acl=true, with the same ZooKeeper user. It
    can be repeated at any time.
    """
    config = load_settings(file, pairs(sets, "--set") | {"zookeeper.set.acl": "true"})
    _run(session, config, "{} znodes can only be changed by the user of the brokers")


@click.command()
@yes_option
@_options
def unsecure(session: Session, *, file: Path | None, sets: Sequence[str], yes: bool) -> None:
    """Let everybody read and change existing znodes:  headrace zookeeper unsecure --config FILE

    Run it after all brokers have been restarted with zookeeper.set.acl=false, and still with their ZooKeeper
    user: only this user may do it.
    """
    config = load_settings(file, pairs(sets, "--set") | {"zookeeper.set.acl": "false"})
    question = f"Let everybody who reaches {config.text('zookeeper.connect')} change the cluster?"
    confirm(question, action="to open the znodes", declined="nothing was changed", yes=yes)
    _run(session, config, "{} znodes can be read and changed by everybody")


def _run(session: Session, config: BrokerConfig, text: str) -> None:
    async def reset() -> int:
        async with connected(config) as connection:
            return await reset_acls(connection, protect=config.flag("zookeeper.set.acl"))

    count = asyncio.run(reset())
    if not count:
        raise InvalidSetting(
            f"zookeeper.connect={config.text('zookeeper.connect')}: there are no znodes of brokers; is its "
            "path right?"
        )
    session.show({"znodes": count}, text.format(count))
