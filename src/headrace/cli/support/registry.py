"""The schema registry of a command: by --registry, the settings, or the cluster."""

import os
from typing import TYPE_CHECKING, Final

import click

from headrace.cli.support.session import REGISTRY_VARIABLE, Session, into_session

if TYPE_CHECKING:
    from headrace.client.schemas.location import RegistryLocation
    from headrace.client.schemas.records import RecordSchemas
    from headrace.client.schemas.registry import RegistryClient

ADVICE: Final = "start `headrace up`, or give the address of a registry with --registry"
ANSWER_S: Final = 15.0  # for a schema of a record; the gateway of `headrace up` may have to start first

registry_option = click.option(
    "--registry",
    "-r",
    metavar="URL",
    expose_value=False,
    callback=into_session("registry_option"),
    help="The address of the schema registry. Default: HEADRACE_REGISTRY, schema.registry.url of the profile "
    "or of --command-config, or what the brokers say.",
)


def connect(session: Session, timeout_s: float | None = None) -> "RegistryClient":
    """Return the registry for `headrace schema`, wherever it is."""
    from headrace.client.schemas.location import discovered  # noqa: PLC0415

    return _client(_given(session) or discovered(session.connection), timeout_s)


def schemas_of_records(session: Session) -> "RecordSchemas | None":
    """Return the schemas for records of the cluster; None if it has no registry, or one without schemas."""
    from headrace.client.schemas.records import RecordSchemas  # noqa: PLC0415

    registry = registry_of_records(session)
    return None if registry is None else RecordSchemas(registry)


def registry_of_records(session: Session) -> "RegistryClient | None":
    """Return the registry for records of the cluster; None if it has none, or one without schemas.

    A registry that the user names is used in any case.
    """
    from headrace.client.errors import ClientError  # noqa: PLC0415
    from headrace.client.schemas.location import advertised, at_gateway  # noqa: PLC0415

    location = _given(session)
    if location is not None:
        return _client(location, ANSWER_S)
    try:
        known = advertised(session.connection)
    except ClientError:  # the cluster does not answer, which the command itself reports
        return None
    if not known.has_schemas or not known.url:
        return None
    return _client(at_gateway(known.url, session.connection), ANSWER_S)


def _given(session: Session) -> "RegistryLocation | None":
    """Return the registry that an option, the environment or a file names; None if there is none."""
    from headrace.client.schemas.location import URL, located  # noqa: PLC0415  not for --help

    variable = os.environ.get(REGISTRY_VARIABLE) or None
    url = session.registry_option or session.preferred(variable, session.client_settings.get(URL))
    in_file = url == session.client_settings.get(URL)  # it may contain a reference
    return located(session.client_settings, session.connection, None if in_file else url)


def _client(location: "RegistryLocation", timeout_s: float | None) -> "RegistryClient":
    from headrace.client.schemas.registry import TIMEOUT_S, RegistryClient  # noqa: PLC0415

    return RegistryClient(
        location.url,
        timeout_s=timeout_s or TIMEOUT_S,
        advice=ADVICE,
        user_info=location.user_info,
        context=location.context(),
    )
