"""`headrace`: the one command, and the one place where an error becomes a line on stderr."""

import json
import logging
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NoReturn

import click

from headrace import __version__
from headrace.cli.lazy import Lazy, LazyGroup
from headrace.cli.session import Halfway, Session, options
from headrace.cli.streams import open_closed
from headrace.cli.texts import INTERRUPTED

SERVERS: Final = "Run"
RECORDS: Final = "Records"
ADMINISTRATION: Final = "Look and change"
TOOLS: Final = "Try and check"

COMMANDS: Final = {
    "up": Lazy("headrace.cli.up", "up", "Run a broker, or a cluster of them, with all it needs.", SERVERS),
    "broker": Lazy("headrace.cli.broker", "broker", "Run a broker; list and describe those there.", SERVERS),
    "gateway": Lazy(
        "headrace.cli.gateway", "gateway", "Serve a cluster over HTTP: REST, schemas, console.", SERVERS
    ),
    "coordinator": Lazy("headrace.cli.coordinator", "coordinator", "Run the embedded coordinator.", SERVERS),
    "zookeeper": Lazy("headrace.cli.zookeeper", "zookeeper", "Run Apache ZooKeeper itself.", SERVERS),
    "produce": Lazy("headrace.cli.produce", "produce", "Write records to a topic.", RECORDS),
    "consume": Lazy(
        "headrace.cli.consume",
        "consume",
        "Print the records of topics, alone or as a member of a group.",
        RECORDS,
    ),
    "pipeline": Lazy(
        "headrace.cli.pipeline", "pipeline", "Run pipelines on Spark: topics into topics and tables.", RECORDS
    ),
    "topic": Lazy(
        "headrace.cli.topic", "topic", "Create, list, describe, alter and delete topics.", ADMINISTRATION
    ),
    "group": Lazy(
        "headrace.cli.group", "group", "List, describe, reset and delete consumer groups.", ADMINISTRATION
    ),
    "schema": Lazy(
        "headrace.cli.schema", "schema", "Register, check, compare and delete schemas.", ADMINISTRATION
    ),
    "cluster": Lazy(
        "headrace.cli.cluster",
        "cluster",
        "Show a cluster's state; move partitions, leaders and brokers.",
        ADMINISTRATION,
    ),
    "config": Lazy(
        "headrace.cli.config", "config", "Show and change settings of topics and brokers.", ADMINISTRATION
    ),
    "log": Lazy("headrace.cli.log", "log", "Look at a partition's files on disk.", ADMINISTRATION),
    "bench": Lazy("headrace.cli.bench", "bench", "See how fast it is on this machine.", TOOLS),
    "completion": Lazy(
        "headrace.cli.completion", "completion", "Print what completes commands in bash, zsh or fish.", TOOLS
    ),
    "demo": Lazy(
        "headrace.cli.demo",
        "demo",
        "See a cluster and a Spark pipeline survive a kill -9.",
        TOOLS,
    ),
    "doctor": Lazy(
        "headrace.cli.doctor", "doctor", "Check the machine and a cluster, and say what to do.", TOOLS
    ),
}


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    epilog="""\b
A first look, in two terminals:
  headrace up --data /tmp/headrace
  headrace produce orders tea && headrace consume orders --exit-at-end
""",
)
@click.version_option(__version__, prog_name="headrace")
@options
@click.pass_context
def commands(context: click.Context) -> None:
    """A distributed, replicated commit log that any Kafka client can use."""
    context.ensure_object(Session).look_around()


def main() -> NoReturn:
    """Run the command line. A failure the product knows ends in one sentence and exit status 1."""
    open_closed()
    logging.basicConfig(format="headrace: %(message)s", level=logging.WARNING)
    session = Session()
    try:
        sys.exit(commands.main(prog_name="headrace", standalone_mode=False, obj=session))
    except click.UsageError as error:
        if (
            type(error).__name__ == "NoArgsIsHelpError"
        ):  # a bare `headrace group`; older releases of click exit
            click.echo(error.format_message(), err=True)
            sys.exit(error.exit_code)
        session.as_json |= "--json" in sys.argv  # it may stand behind what is wrong
        _fail(session, _usage(error), error.exit_code)
    except click.ClickException as error:
        done = error.done if isinstance(error, Halfway) else {}
        _fail(session, error.format_message(), error.exit_code, done)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except Exception as error:
        if not isinstance(error, known_errors()):
            raise
        _fail(session, _sentence(error), 1)


def known_errors() -> tuple[type[Exception], ...]:
    """The errors whose message is a sentence for a person. Imported only when there is one to look at."""
    from headrace.broker.errors import StartRefused  # noqa: PLC0415
    from headrace.broker.settings import InvalidSetting  # noqa: PLC0415
    from headrace.cli.process import Refused  # noqa: PLC0415
    from headrace.client.errors import ClientError  # noqa: PLC0415
    from headrace.coordination.errors import CoordinationError  # noqa: PLC0415
    from headrace.ports import PortsTaken  # noqa: PLC0415
    from headrace.protocol.errors import KafkaError  # noqa: PLC0415
    from headrace.spark.errors import SparkError  # noqa: PLC0415
    from headrace.storage.errors import StorageError  # noqa: PLC0415

    return (
        ClientError,
        CoordinationError,
        InvalidSetting,
        KafkaError,
        OSError,
        PortsTaken,
        Refused,
        SparkError,
        StartRefused,
        StorageError,
    )


def _sentence(error: Exception) -> str:
    """What it says; of the system's own errors without their numbers."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror.lower()}"
    return str(error)


def _usage(error: click.UsageError) -> str:
    if error.ctx is None:
        return error.format_message()
    return f"{error.format_message()} See `{error.ctx.command_path} --help`."


def _fail(
    session: Session, sentence: str, status: int, done: Mapping[str, object] = MappingProxyType({})
) -> NoReturn:
    """One line on stderr: for a machine, an object with an `error`, and what was done before it."""
    line = " ".join(sentence.split())
    said = json.dumps({"error": line, **done}, ensure_ascii=False) if session.as_json else f"headrace: {line}"
    click.echo(said, err=True)
    sys.exit(status)
