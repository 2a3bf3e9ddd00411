"""`headrace up`: a broker and, unless there is a ZooKeeper, its coordinator, in one process."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import click

from headrace.broker.config import BrokerConfig
from headrace.broker.server import Broker
from headrace.cli import process, settings
from headrace.cli.texts import pairs

BROKER_ID: Final = 1
_FOR_ONE_BROKER = {
    # Long enough for consumers that start together, short enough that nobody waits for a first message.
    "group.initial.rebalance.delay.ms": "100",
    "offsets.topic.num.partitions": "10",  # each of them is a directory and takes its time at every start
}
"""What a cluster on one machine is better off with than with Kafka's defaults; a setting still wins."""


_DECIDED: Final = {
    "broker.id": "it is 1",
    "log.dirs": "use --data",
    "listeners": "use --host and --port",
    "zookeeper.connect": "use --zookeeper",
}


@click.command()
@click.option(
    "--data",
    "data_dir",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Where everything is kept; made if it is not there.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=9092, show_default=True, help="0: any free one."
)
@click.option("--brokers", type=click.IntRange(1), default=1, show_default=True, help="One, so far.")
@click.option("--zookeeper", metavar="HOST:PORT,...", help="Use this ensemble, start no coordinator.")
@settings.set_option
def up(*, data_dir: Path, host: str, port: int, brokers: int, zookeeper: str | None, sets: list[str]) -> None:
    """Run a broker with all it needs:  headrace up --data DIR

    Prints `ready bootstrap=HOST:PORT` when clients can connect. TERM or Ctrl-C stops everything; the same
    command with the same DIR continues with the data. Settings are those of `headrace broker --settings`.
    """
    if brokers > 1:
        raise process.Refused(f"--brokers {brokers}: one broker is all that `headrace up` can run so far")
    given = pairs(sets, "--set")
    config = _config(data_dir, host, port, zookeeper, given)
    process.run(_serve(data_dir, config, embedded=zookeeper is None))


def _config(
    data_dir: Path, host: str, port: int, zookeeper: str | None, given: Mapping[str, str]
) -> BrokerConfig:
    asked = settings.load(None, given)
    for name, instead in _DECIDED.items():
        if name in asked.given:
            raise process.Refused(f"{name} is not for `headrace up` to be told: {instead}")
    bound = f"[{host}]" if ":" in host else host
    return BrokerConfig.of(
        {
            **_FOR_ONE_BROKER,
            **asked.given,
            "broker.id": str(BROKER_ID),
            "log.dirs": str(data_dir / f"broker-{BROKER_ID}"),
            "listeners": f"PLAINTEXT://{bound}:{port}",
            "zookeeper.connect": zookeeper or "",
        }
    )


async def _serve(data_dir: Path, config: BrokerConfig, *, embedded: bool) -> None:
    async with AsyncExitStack() as stack:
        failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if embedded:
            from headrace.coordination.embedded.server import Coordinator  # noqa: PLC0415  not with --zookeeper

            coordinator = await stack.enter_async_context(Coordinator(data_dir / "coordinator", port=0))
            coordinator.end_sessions()  # of brokers that ended with an earlier process
            config = BrokerConfig.of({**config.given, "zookeeper.connect": coordinator.address})
            failure = asyncio.ensure_future(coordinator.wait_failed())
            stack.callback(failure.cancel)
        broker = Broker(config)
        await broker.start()
        stack.push_async_callback(broker.stop)
        process.Readiness().say(f"ready bootstrap={broker.bootstrap}")
        await failure
