"""`Registry(...)`: a source whose records say themselves, by an id, which schema they are of."""

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from headrace.pipeline.decoders import Decoder

LATEST: Final = "latest"
PATIENCE_S: Final = 120.0


def _url() -> str:
    return os.environ.get("HEADRACE_REGISTRY") or "http://127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class Registry:
    """Records in the wire format of a schema registry: Registry("http://127.0.0.1:8080").

    Without an address it is HEADRACE_REGISTRY, or the one that `headrace up` has by default.
    The columns are those of one schema, the reader's. It is the latest version of the subject TOPIC-value, or
    of `subject`, when the pipeline starts; a `version` that is given; or `schema`, a file that ends in .avsc,
    .json or .proto. Every record is read with the schema that it was written with, and becomes a row of the
    reader's.
    """

    url: str = field(default_factory=_url, repr=False)  # it may have a password in it
    subject: str | None = None
    version: int | str = LATEST
    schema: str | None = None
    message: str | None = None  # Protobuf: the message of the columns, by its full name
    patience_s: float = PATIENCE_S  # how long a batch waits for a registry that is away

    @property
    def place(self) -> str:
        """The address, for people: without a password."""
        parts = urlsplit(self.url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    def settled(self, topic: str, part: str = "value") -> "Decoder":
        """What decodes a topic's values, or keys, for as long as a run takes; PipelineError if none does."""
        from headrace.pipeline.registry.decoder import look_up  # noqa: PLC0415  it takes a while to import

        return look_up(self, topic, part)
