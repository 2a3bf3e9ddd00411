"""Decoding by a schema registry: Avro, JSON Schema and Protobuf in its wire format become typed columns."""

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from headrace.client.wire.config_providers import without_references
from headrace.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from headrace.pipeline.decoders import Decoder

LATEST: Final = "latest"
PATIENCE_S: Final = 120.0
_LOCAL: Final = "http://127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class Registry:
    """Records in the wire format of a schema registry: Registry("http://127.0.0.1:8080").

    The default URL is HEADRACE_REGISTRY, or that of `headrace up`. The columns are those of one schema,
    the reader's: the latest version of the subject TOPIC-value, or of `subject`, when the pipeline starts;
    the given `version`; or `schema`, a file that ends in .avsc, .json or .proto. Every record is decoded with
    the schema that it was written with, and becomes a row of the reader's schema.

    With `follow`, a record of a version that is newer than the reader's restarts the queries with the latest
    version, before any row of that batch is written.
    """

    # It may contain a password.
    url: str = field(default_factory=lambda: os.environ.get("HEADRACE_REGISTRY") or _LOCAL, repr=False)
    subject: str | None = None
    version: int | str = LATEST
    schema: str | None = None
    message: str | None = None  # Protobuf: the full name of the message that the columns are of
    patience_s: float = PATIENCE_S  # how long a batch waits for a registry that is unreachable
    follow: bool = False
    truncate_nanoseconds: bool = False  # of times, which columns have in microseconds

    def __post_init__(self) -> None:
        if self.follow and (self.schema is not None or self.version != LATEST):
            raise PipelineError(
                "Registry(follow=True) reads the latest version: leave out version and schema"
            )

    @property
    def address(self) -> str:
        """The address without a password."""
        parts = urlsplit(without_references(self.url))
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    def settled(self, topic: str, part: str = "value") -> "Decoder":
        """Return the decoder of a topic's values or keys for one run; PipelineError if there is none."""
        from headrace.pipeline.registry.decoder import look_up  # noqa: PLC0415  slow to import

        return look_up(self, topic, part)
