"""`headrace`: the list of commands, and the one place where an error becomes a line on stderr."""

import json
import logging
import os
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NoReturn

import click

from headrace import __version__
from headrace.cli.support.lazy import Lazy, LazyGroup
from headrace.cli.support.session import INTERRUPTED, PartlyDone, Session, root_options
from headrace.system.extras import HTTP, SECURITY, SPARK, SQL, MissingExtra

_SECTIONS: Final = {
    "Run": {
        "up": "Run a broker, or a cluster of brokers, on this machine.",
        "broker": "Run one broker; list and describe the brokers of a cluster.",
        "gateway": "Serve a cluster over HTTP: REST, schemas, console.",
        "coordinator": "Run the embedded coordinator.",
        "zookeeper": "Run Apache ZooKeeper.",
    },
    "Records": {
        "produce": "Write records to a topic.",
        "consume": "Print the records of topics, alone or as a member of a group.",
        "sql": "Query topics with SQL.",
        "pipeline": "Run pipelines on Spark: from topics into topics and tables.",
        "table": "Show and maintain Delta and Iceberg tables.",
    },
    "Look and change": {
        "topic": "Create, list, describe, alter and delete topics.",
        "group": "List, describe, reset and delete consumer groups.",
        "txn": "List and describe transactions, and the producers of a partition.",
        "schema": "Register, check and delete schemas.",
        "cluster": "Show the state of a cluster; move partitions and leaders.",
        "config": "Show and change settings of topics and brokers.",
        "quota": "List, set and remove the quotas of users, client ids and IP addresses.",
        "log": "Check and print the files of a partition on disk.",
    },
    "Secure": {
        "acl": "List, allow, deny and remove what users may do.",
        "certs": "Make, renew and show certificates for TLS.",
        "profile": "Add, choose and remove the profiles of clusters.",
        "user": "Add, list and remove users and their passwords.",
    },
    "Try and check": {
        "bench": "Measure throughput and latency on this machine.",
        "completion": "Print a completion script for bash, zsh or fish.",
        "demo": "Watch a cluster and a Spark pipeline survive a kill -9.",
        "doctor": "Check the machine and a cluster, and advise what to do.",
    },
}
_NEEDS: Final = {"certs": SECURITY, "demo": SPARK, "gateway": HTTP, "sql": SQL, "table": SPARK}
_IN_PACKAGES: Final = {"doctor": "doctor.commands", "pipeline": "pipeline.commands"}
COMMANDS: Final = {
    name: Lazy(f"headrace.cli.{_IN_PACKAGES.get(name, name)}", name, line, section, _NEEDS.get(name))
    for section, lines in _SECTIONS.items()
    for name, line in lines.items()
}


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    context_settings={"show_default": True, "help_option_names": ["-h", "--help"]},
    epilog="""\b
A first look, in two terminals:
  headrace up --data /tmp/headrace
  headrace produce orders tea && headrace consume orders --exit-at-end
""",
)
@click.version_option(__version__, prog_name="headrace")
@root_options
@click.pass_context
def commands(context: click.Context) -> None:
    """A distributed, replicated commit log that any Kafka client can use."""
    context.ensure_object(Session)


def main() -> NoReturn:
    """Run the command line; an expected error becomes one line on stderr and exit status 1."""
    # Standard streams that were closed by the caller (`>&-`) are None in Python.
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123  until the exit
    logging.basicConfig(format="headrace: %(message)s", level=logging.WARNING)
    session = Session()
    try:
        sys.exit(commands.main(prog_name="headrace", standalone_mode=False, obj=session))
    except click.UsageError as error:
        # `headrace group` alone; older releases of click exit by themselves.
        if type(error).__name__ == "NoArgsIsHelpError":
            click.echo(error.format_message(), err=True)
            sys.exit(error.exit_code)
        session.as_json |= "--json" in sys.argv  # click stops parsing at the error, --json may follow it
        advice = "" if error.ctx is None else f" See `{error.ctx.command_path} --help`."
        _fail(session, f"{error.format_message()}{advice}", error.exit_code)
    except click.ClickException as error:
        done = error.done if isinstance(error, PartlyDone) else {}
        _fail(session, error.format_message(), error.exit_code, done)
    except MissingExtra as error:
        session.as_json |= "--json" in sys.argv  # a command that is not there parses nothing
        _fail(session, str(error), 1)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except Exception as error:
        if not isinstance(error, known_errors()):
            raise
        _fail(session, sentence(error, session), 1)


def known_errors() -> tuple[type[Exception], ...]:
    """Return the errors whose message is a sentence for the user; imported only after an error."""
    from headrace.broker.errors import StartRefused  # noqa: PLC0415
    from headrace.broker.settings.setting import InvalidSetting  # noqa: PLC0415
    from headrace.cli.support.process import CommandFailed  # noqa: PLC0415
    from headrace.client.errors import ClientError  # noqa: PLC0415
    from headrace.coordination.errors import CoordinationError  # noqa: PLC0415
    from headrace.protocol.errors import KafkaError  # noqa: PLC0415
    from headrace.security.pem import InvalidCertificate  # noqa: PLC0415
    from headrace.spark.errors import SparkError  # noqa: PLC0415
    from headrace.storage.errors import StorageError  # noqa: PLC0415
    from headrace.system.ports import PortsTaken  # noqa: PLC0415

    of_servers = (CoordinationError, InvalidSetting, PortsTaken, StartRefused, StorageError)
    return (ClientError, CommandFailed, InvalidCertificate, KafkaError, OSError, SparkError, *of_servers)


def sentence(error: Exception, session: Session) -> str:
    """Return the message of `error`; an OSError without its number, a missing topic with similar names."""
    from headrace.client.errors import NoSuchTopic  # noqa: PLC0415

    if isinstance(error, NoSuchTopic) and error.topic is not None:
        similar = session.similar_topics(error.topic)
        return f"{error}; {similar}" if similar else str(error)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror.lower()}"
    return str(error)


def _fail(
    session: Session, sentence: str, status: int, done: Mapping[str, object] = MappingProxyType({})
) -> NoReturn:
    """Print one line on stderr and exit; with --json an object with `error` and what is `done`."""
    line = " ".join(sentence.split())
    as_json = json.dumps({"error": line, **done}, ensure_ascii=False)
    click.echo(as_json if session.as_json else f"headrace: {line}", err=True)
    sys.exit(status)
