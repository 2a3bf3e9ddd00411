"""The tables of a query: topics that a query names, in a connection of DuckDB."""

import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from types import FrameType
from typing import Any, Final

try:
    import duckdb
except ImportError as missing:
    raise ImportError("headrace sql needs DuckDB: pip install 'headrace[sql]'", name="duckdb") from missing

from headrace.client.admin.topics import TopicAdmin
from headrace.client.errors import ClientError, NoSuchTopic, Unreachable, why_no_topic
from headrace.client.schemas.registry import RegistryClient
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.tables.arrow.decoding import REGISTRY, TEXT, NoSubject, Registry, Undecodable
from headrace.tables.arrow.scan import CLIENT_ID, Scan
from headrace.tables.reader.cluster import ClusterConnections
from headrace.tables.sql.dataset import TopicDataset

_CLOSE_RETRY_S: Final = 0.02
_MAX_TABLES: Final = 100  # of a query
_SHOW_TABLES: Final = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*", re.IGNORECASE)
_OFFSET: Final = re.compile(r"(?<![\w\".])offset(?![\w\"])", re.IGNORECASE)


Progress = Callable[[float, str], None]
"""Called with the share of all work that was done since the last call, and a label."""


class QueryRefused(ClientError):
    """A query that cannot be run; the message says why."""


@contextmanager
def connected() -> Iterator["duckdb.DuckDBPyConnection"]:
    """Yield a connection in which names of tables are never variables of this program.

    At the end a thread may still run a query of which nobody wants more rows: it is interrupted, and this
    waits until it has ended, because the interpreter must not exit while DuckDB reads a topic. After Ctrl-C
    and a broken pipe it does not wait: the caller ends the process at once.
    """
    connection = duckdb.connect()
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET TimeZone = 'UTC'")
    is_used = True
    try:
        yield connection
    except (KeyboardInterrupt, BrokenPipeError):
        is_used = False
        raise
    finally:
        while is_used:
            connection.interrupt()
            try:
                connection.close()
                is_used = False
            except duckdb.ResourceInUseException:  # the thread has not noticed the interrupt yet
                time.sleep(_CLOSE_RETRY_S)


class Topics:
    """The topics of a cluster; those that a query names become tables."""

    def __init__(
        self,
        connection: ConnectionSettings,
        registry: Callable[[], RegistryClient | None],
        *,
        decode: str,
        on_error: str,
        progress: Progress,
    ) -> None:
        """`decode` is "auto", "registry", "text" or "bytes"; `registry` returns None if the cluster has none.

        Nothing is asked of the cluster unless the query names a table that may be a topic.
        """
        self._connection = connection
        self._find_registry = registry
        self._decode = decode
        self._on_error = on_error
        self._on_progress = progress
        self._query = ""
        self._failure: Exception | None = None
        self._others: list[str] = []  # tables of the query that are not topics
        self._shares: dict[str, float] = {}  # of each topic that is read

    def query(self, connection: "duckdb.DuckDBPyConnection", query: str) -> "duckdb.DuckDBPyRelation":
        """Return the rows of a query, which are not read yet; `show tables` has a row for each topic."""
        self._query = query
        if _SHOW_TABLES.fullmatch(query):
            with Brokers(self._connection) as brokers:
                topics = TopicAdmin(brokers).names()
            return connection.sql("SELECT unnest(?::VARCHAR[]) AS name", params=[topics])
        statements = connection.extract_statements(query)
        if len(statements) != 1:
            raise QueryRefused("Expected one query.")
        if statements[0].type != duckdb.StatementType.SELECT:
            raise QueryRefused("Expected a query that changes nothing.")
        (parsed,) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()
        names = tables_of(json.loads(parsed[0]))
        if len(names) > _MAX_TABLES:
            raise QueryRefused(f"The query has more than {_MAX_TABLES} tables.")
        self._add(connection, names)
        found = connection.sql(query)
        if found is None:
            raise QueryRefused("Expected a query that returns rows.")
        return found

    def _add(self, connection: "duckdb.DuckDBPyConnection", names: list[tuple[str, ...]]) -> None:
        """Add a table for each name that is a topic; DuckDB knows others, such as files, or refuses them."""
        wanted = {name: ".".join(name) for name in names}
        valid = [topic for topic in wanted.values() if not why_no_topic(topic)]
        if not valid:
            self._others = list(wanted.values())
            return
        self._connection.check()
        cluster = ClusterConnections(
            self._connection.bootstrap, self._connection.security, client_id=CLIENT_ID
        )
        try:
            existing = cluster.topics(valid)
        finally:
            cluster.close()
        tables = {name: topic for name, topic in wanted.items() if topic in existing and len(name) <= 2}
        self._others = [topic for name, topic in wanted.items() if name not in tables]
        for number, (name, topic) in enumerate(tables.items()):
            progress = partial(self._progress, topic, len(tables))
            source = f"headrace_topic_{number}"
            connection.register(source, TopicDataset(self._scan(topic), progress, self._fail))
            if len(name) == 2:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(name[0])}")
            view = ".".join(map(_quoted, name))
            connection.execute(f"CREATE VIEW {view} AS SELECT * FROM {source}")  # noqa: S608  both are quoted

    @cached_property
    def _registry(self) -> RegistryClient | None:
        return self._find_registry() if self._decode in {"auto", REGISTRY} else None

    def _scan(self, topic: str) -> Scan:
        scan = partial(Scan, self._connection, (topic,), on_error=self._on_error)
        if self._decode == REGISTRY and self._registry is None:
            raise QueryRefused("The cluster has no schema registry: give its address with --registry.")
        if self._decode == "bytes" or self._registry is None:
            return scan(schema=None if self._decode == "bytes" else TEXT)
        by_registry = scan(schema=Registry(self._registry))
        try:
            by_registry.arrow_schema  # noqa: B018  asks the registry
        except NoSubject:
            if self._decode == REGISTRY:
                raise
            return scan(schema=TEXT)
        except Unreachable as error:
            raise Unreachable(f"{error}; --decode text or --decode bytes reads without it") from error
        return by_registry

    def _progress(self, topic: str, tables: int, done: int, total: int) -> None:
        share = done / total / tables if total else 0.0
        before, self._shares[topic] = self._shares.get(topic, 0.0), share
        self._on_progress(share - before, f"reading {topic}")

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise our own error instead of DuckDB's about it, and a sentence instead of DuckDB's own errors.

        DuckDB may raise an error of its own instead of the KeyboardInterrupt of Ctrl-C.
        """
        pressed = False

        def press(number: int, frame: FrameType | None) -> None:
            nonlocal pressed
            pressed = True
            signal.default_int_handler(number, frame)

        before = signal.getsignal(signal.SIGINT)
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, press)
        try:
            yield
        except duckdb.Error as error:
            if pressed:
                raise KeyboardInterrupt from None
            if isinstance(self._failure, Undecodable):
                hint = "--decode bytes, --on-error null or --on-error skip would continue"
                raise QueryRefused(f"{self._failure.what}; {hint}") from error
            if self._failure is not None:
                raise self._failure from None
            raise self._refusal(error) from error
        finally:
            if before is signal.default_int_handler:
                signal.signal(signal.SIGINT, before)

    def _refusal(self, error: Exception) -> ClientError:
        first = " ".join(str(error).split("\n\nLINE")[0].split())
        if isinstance(error, duckdb.ParserException) and _OFFSET.search(self._query):
            return QueryRefused(f'{first}; offset is a word of SQL: as a column it is written "offset"')
        if not self._others or not isinstance(error, duckdb.CatalogException):
            return QueryRefused(first)
        for topic in self._others:
            if f"Table with name {topic} does not exist" in first:  # DuckDB suggests tables of its own
                return NoSuchTopic(topic)
        return QueryRefused(
            f"{first} (There is no topic {', '.join(self._others)}; `show tables` lists them.)"
        )


def tables_of(parsed: Any) -> list[tuple[str, ...]]:
    """Return the tables of a query, as json_serialize_sql returns it: `a."b.c"` is a and b.c.

    Names that the query itself defines, with WITH, are not among them.
    """
    found: dict[tuple[str, ...], None] = {}
    defined: set[tuple[str, ...]] = set()
    waiting = [parsed]
    while waiting:
        match waiting.pop():
            case {"type": "BASE_TABLE", "table_name": name, **rest}:
                parts = (rest.get("catalog_name"), rest.get("schema_name"), name)
                found[tuple(str(part) for part in parts if part)] = None
                waiting += rest.values()
            case dict() as node:
                defined |= {(each["key"],) for each in node.get("cte_map", {}).get("map", ())}
                waiting += node.values()
            case list() as nodes:
                waiting += nodes
    return sorted(found.keys() - defined)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
