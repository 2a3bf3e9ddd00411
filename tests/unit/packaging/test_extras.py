"""What `pip install headrace` brings is enough for brokers, command line and SDK; the rest is an extra."""

import subprocess
import sys
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from headrace.system.extras import (
    EXTRAS,
    HTTP,
    SECURITY,
    Extra,
    MissingExtra,
    importing,
    is_installed,
    require,
)
from support.base_install import PROJECT, distributions_of, environment, hidden_packages

ABSENT = Extra("absent", "a package that nobody has", ("nobody.has.this",))

# Packages of extras, and what only their users import.
NOT_IN_BASE = (
    "headrace.arrow",
    "headrace.cli.certs",
    "headrace.cli.demo",
    "headrace.client.serializers.codecs.",  # but those that the command line imports
    "headrace.duckdb",
    "headrace.gateway",
    "headrace.pipeline",
    "headrace.polars",
    "headrace.registry.formats",
    "headrace.security.certificate_directory",
    "headrace.security.certificates",
    "headrace.spark",
    "headrace.tables",
    "headrace.testing.plugin",
)
IMPORT_ALL = f"""
import importlib, pkgutil, headrace
for found in pkgutil.walk_packages(headrace.__path__, "headrace."):
    if not found.name.startswith({NOT_IN_BASE!r}) and not found.name.endswith("__main__"):
        importlib.import_module(found.name)
for name in headrace.__all__:
    getattr(headrace, name)
"""


def in_base_install(program: str, *extras: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], env=environment(*extras), capture_output=True, text=True, check=False
    )


def test_every_module_of_broker_cli_and_sdk_is_imported_without_any_extra() -> None:
    ended = in_base_install(IMPORT_ALL)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_packages_of_extras_are_hidden_in_that_test() -> None:
    assert {"fastapi", "pyspark", "cryptography", "fastavro", "rich"} <= hidden_packages()
    assert "confluent_kafka" not in hidden_packages()
    assert in_base_install("import fastapi").returncode == 1


def test_a_serializer_without_its_packages_says_what_to_install() -> None:
    ended = in_base_install("import headrace; headrace.Avro('string')")
    assert ended.stderr.endswith(
        "MissingExtra: Avro needs the packages of schema formats: pip install 'headrace[http]'\n"
    )


def test_a_pkcs12_store_without_cryptography_says_what_to_install() -> None:
    ended = in_base_install(
        "import pathlib, tempfile\n"
        "from headrace.security.stores import Keystore\n"
        "path = pathlib.Path(tempfile.mkdtemp(), 'store.p12')\n"
        "path.write_bytes(bytes.fromhex('3003020103'))\n"
        "Keystore.of({'ssl.keystore.location': str(path), 'ssl.keystore.password': 'x'}).identity()\n"
    )
    assert "a PKCS12 store, which needs cryptography: pip install 'headrace[security]'" in ended.stderr


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        (
            "headrace.testing.Broker().__enter__().http",
            f"the HTTP gateway of the fixture needs {HTTP.brings}",
        ),
        ("headrace.testing.Broker(secure=True).__enter__()", "secure=True needs cryptography"),
    ],
)
def test_the_fixture_says_what_a_gateway_or_a_secured_broker_needs(program: str, sentence: str) -> None:
    ended = in_base_install(f"import headrace.testing; {program}")
    assert f"MissingExtra: {sentence}: pip install 'headrace[" in ended.stderr


def test_a_protobuf_schema_without_its_packages_has_no_names_and_the_reason_is_given() -> None:
    ended = in_base_install(
        "from headrace.registry.formats import Schema, SchemaType\n"
        "from headrace.registry.formats.parse import parse\n"
        "parse(Schema(text='syntax = \"proto3\";', type=SchemaType.PROTOBUF), None)\n"
    )
    assert "MissingExtra: a schema in PROTOBUF needs" in ended.stderr


@pytest.mark.parametrize(
    ("extra", "modules"),
    [
        ("arrow", "headrace.arrow"),
        ("polars", "headrace.polars"),
        ("sql", "headrace.duckdb, headrace.tables.sql.tables, headrace.tables.sql.output"),
        ("security", "headrace.cli.certs"),
        ("http", "headrace.gateway.app, headrace.gateway.serving"),
        ("otel", "headrace.gateway.serving"),
        ("spark", "headrace.spark.launcher, headrace.pipeline.runner, headrace.cli.demo.command"),
    ],
)
def test_an_extra_is_enough_for_what_it_is_for(extra: str, modules: str) -> None:
    ended = in_base_install(f"import {modules}", extra)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_duckdb_returns_timestamps_of_topics() -> None:
    program = "import duckdb; duckdb.sql(\"select timestamptz '2026-01-01 00:00:00Z'\").fetchall()"
    ended = in_base_install(program, "sql")
    assert (ended.returncode, ended.stderr) == (0, "")


SCHEMA = """
from headrace.tables.registry.batches import reader_of
from headrace.tables.registry.reader import ResolvedSchema
from headrace.registry.formats import Schema, SchemaType
reader_of(ResolvedSchema(Schema(text='"string"', type=SchemaType.AVRO)))
"""


def test_a_schema_that_arrow_alone_cannot_read_says_what_to_install() -> None:
    ended = in_base_install(SCHEMA, "arrow")
    assert ended.stderr.endswith(
        "MissingExtra: a schema in AVRO needs the packages of gateway and schema registry: "
        "pip install 'headrace[http]'\n"
    )
    assert in_base_install(SCHEMA, "arrow", "http").returncode == 0


def test_a_missing_extra_is_one_sentence_with_the_command() -> None:
    assert not is_installed(ABSENT)
    with pytest.raises(
        MissingExtra, match=r"^x needs a package that nobody has: pip install 'headrace\[absent\]'$"
    ):
        require(ABSENT, "x")
    with pytest.raises(MissingExtra), importing(ABSENT, "x"):
        import nobody  # type: ignore[import-not-found] # noqa: F401, PLC0415


def test_an_import_that_fails_for_another_reason_keeps_its_error() -> None:
    with pytest.raises(ModuleNotFoundError, match="nobody") as raised, importing(HTTP, "x"):
        import nobody  # noqa: F401, PLC0415
    assert not isinstance(raised.value, MissingExtra)


@pytest.mark.parametrize("extra", EXTRAS.values(), ids=EXTRAS.keys())
def test_an_extra_brings_every_package_that_its_commands_look_for(extra: Extra) -> None:
    assert is_installed(extra)
    provided = metadata.packages_distributions()
    brought = distributions_of(extra.name)
    for module in extra.modules:
        names = provided[module.partition(".")[0]]
        assert any(canonicalize_name(each) in brought for each in names), module


def test_all_brings_every_extra() -> None:
    (line,) = PROJECT["optional-dependencies"]["all"]
    assert Requirement(line).extras == set(PROJECT["optional-dependencies"]) - {"all"}
    assert set(EXTRAS) == Requirement(line).extras


def test_security_is_part_of_http() -> None:
    assert set(SECURITY.modules) <= set(HTTP.modules)
