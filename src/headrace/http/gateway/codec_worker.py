"""The process that writes and reads values by strangers' schemas, within bounds of CPU time and memory.

    python -P -m headrace.http.gateway.codec_worker CPU_S      jobs on stdin, results on stdout: see `Job`

fastavro, jsonschema_rs and protobuf are C and Rust that hold the interpreter's lock and know no bounds: five
bytes of Avro are a list of a billion nulls, a chain of Avro records overflows the stack, a value can be tried
against a recursive JSON schema in 2^n ways. In the gateway's process any of these would be the end of it.
Here the kernel ends the process, and only the job that was too much is refused.
"""

import marshal
import os
import resource
import signal
import sys
from collections import OrderedDict
from collections.abc import Mapping
from struct import Struct
from typing import IO, Any, Final, Literal, NamedTuple

from headrace.registry.formats import InvalidSchema, Reference, Schema, SchemaType, parse

JOB_CPU_S: Final = 2.0  # to encode up to a MiB of values
DECODE_SHARE: Final = 0.25  # of that, to decode one value
MOST_MEMORY: Final = 1 << 30
MOST_DECODED_BYTES: Final = 32 * 1024 * 1024  # of one value
KEPT: Final = 100  # codecs
_LENGTH: Final = Struct(">Q")

SchemaParts = tuple[str, str, tuple[tuple[str, str, int], ...]]  # type, text, references
Spec = tuple[SchemaParts, tuple[tuple[tuple[str, str, int], SchemaParts], ...]]  # and what it refers to


class Job(NamedTuple):
    """What to do with each item, which is a marshalled value to encode or bytes to decode.

    `spec` is None for a schema that the worker may still know by its key.
    """

    key: bytes
    spec: Spec | None
    what: Literal["encode", "decode", "tagged"]
    items: list[bytes]
    most_bytes: int  # that all encoded items may have


class Result(NamedTuple):
    """`done` has what was made of each item up to the first that failed; `outcome` says how it ended.

    The message says why a value does not fit (`bad`) or a schema cannot be used (`invalid`).
    """

    outcome: Literal["done", "bad", "invalid", "unknown", "too large"]
    done: list[Any]
    message: str = ""


def write_frame(stream: IO[bytes], content: tuple[Any, ...]) -> None:
    data = marshal.dumps(tuple(content))
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def read_frame(stream: IO[bytes]) -> tuple[Any, ...] | None:
    """What was written, or None if the other side has ended."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    if len(data) < length:
        return None
    content: tuple[Any, ...] = marshal.loads(data)  # noqa: S302  from our own process
    return content


def spec_of(schema: Schema, referenced: Mapping[Reference, Schema]) -> Spec:
    """A schema and all that it refers to, as a job has it."""
    return _parts(schema), tuple((_named(each), _parts(other)) for each, other in referenced.items())


def _parts(schema: Schema) -> SchemaParts:
    return str(schema.type), schema.text, tuple(map(_named, schema.references))


def _named(reference: Reference) -> tuple[str, str, int]:
    return reference.name, reference.subject, reference.version


def _schema(parts: SchemaParts) -> Schema:
    kind, text, references = parts
    return Schema(SchemaType(kind), text, tuple(Reference(*each) for each in references))


class Worker:
    """Does one job after the other, and keeps the codecs of the schemas that it was given last."""

    def __init__(self) -> None:
        self._codecs: OrderedDict[bytes, Any] = OrderedDict()

    def do(self, job: Job) -> Result:
        from headrace.http.gateway.encoding import BadValue  # noqa: PLC0415  after the limits are set

        done: list[Any] = []
        try:
            codec = self._codec(job)
            if codec is None:
                return Result("unknown", [])
            left = job.most_bytes
            for item in job.items:
                if job.what == "encode":
                    done.append(codec.encode(marshal.loads(item)))  # noqa: S302  from our own process
                    left -= len(done[-1])
                else:
                    done.append(_within(codec.decode(item, tagged=job.what == "tagged")))
                if left < 0:
                    return Result("too large", [])
        except InvalidSchema as error:
            return Result("invalid", [], str(error))
        except BadValue as error:
            return Result("bad", done, str(error))
        return Result("done", done)

    def _codec(self, job: Job) -> Any:
        from headrace.http.gateway.codecs import codec_of  # noqa: PLC0415

        if job.key in self._codecs:
            self._codecs.move_to_end(job.key)
        elif job.spec is not None:
            root, others = job.spec
            referenced = {Reference(*name): _schema(parts) for name, parts in others}
            self._codecs[job.key] = codec_of(parse(_schema(root), lambda each: _resolved(referenced, each)))
            if len(self._codecs) > KEPT:
                self._codecs.popitem(last=False)
        return self._codecs.get(job.key)


def _resolved(referenced: Mapping[Reference, Schema], reference: Reference) -> Schema:
    if reference not in referenced:
        raise InvalidSchema(f"the reference {reference.name} is to nothing")
    return referenced[reference]


def _within(value: Any) -> Any:
    """The value, unless it is larger than a value may be."""
    from headrace.http.gateway.encoding import BadValue  # noqa: PLC0415

    if len(marshal.dumps(value)) > MOST_DECODED_BYTES:
        raise BadValue(f"this is a value of more than {MOST_DECODED_BYTES:,} bytes")
    return value


def main() -> None:
    """Work until the gateway closes our stdin."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the gateway, which then closes our stdin
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    cpu_s = float(sys.argv[1])
    os.nice(5)  # the gateway's event loop goes first
    worker = Worker()
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        job = Job(*frame)
        signal.setitimer(signal.ITIMER_PROF, cpu_s if job.what == "encode" else cpu_s * DECODE_SHARE)
        result = worker.do(job)
        signal.setitimer(signal.ITIMER_PROF, 0)
        write_frame(sys.stdout.buffer, result)


if __name__ == "__main__":
    main()
