"""The process that encodes and decodes values by clients' schemas, with limits on CPU time and memory.

    python -P -m headrace.client.serializers.codecs.worker CPU_S   jobs on stdin, results on stdout: see `Job`

fastavro, jsonschema_rs and protobuf are C and Rust code that holds the GIL and has no limits: five bytes of
Avro can be a list of a billion nulls, a chain of Avro records can overflow the stack, and a recursive JSON
schema can be tried against a value in 2^n ways. Each of these would kill the process that decodes. Here the
kernel kills the worker, and only the job that exceeded the limits is refused. Expressions that select
messages (`expressions`) can loop over lists within lists: the workers evaluate them, too.
"""

import marshal
import os
import pickle
import resource
import signal
import sys
from collections.abc import Mapping
from struct import Struct
from typing import IO, Any, Final, Literal, NamedTuple

from cachetools import LRUCache

from headrace.registry.formats import InvalidSchema, Reference, Schema, parse

JOB_CPU_S: Final = 2.0  # for encoding up to a MiB of values
DECODE_SHARE: Final = 0.25  # of that, for decoding one value
MAX_MEMORY: Final = 1 << 30
MAX_DECODED_BYTES: Final = 32 * 1024 * 1024  # of one value
KEPT: Final = 100  # codecs
_LENGTH: Final = Struct(">Q")
_ENCODES: Final = frozenset({"encode", "encode plain"})

Spec = tuple[Schema, Mapping[Reference, Schema]]  # a schema, and all schemas that it refers to


class Job(NamedTuple):
    """Items to encode, which are marshalled values, or to decode, which are bytes, or messages to match.

    `spec` is None for a schema that the worker may still have in its cache under the key; it is the text of
    an expression for marshalled messages that it has to match.
    """

    key: bytes
    spec: Spec | str | None
    what: Literal["encode", "encode plain", "decode", "tagged", "numbers", "match"]
    items: list[bytes]
    max_bytes: int  # of all encoded items together


class Result(NamedTuple):
    """The items up to the first that failed, in `done`, and how the job ended.

    The message says why a value does not fit (`bad`) or why the schema cannot be used (`invalid`). A message
    to which an expression cannot be applied is None in `done`; why, for the first, is in `message`.
    """

    outcome: Literal["done", "bad", "invalid", "unknown", "too large"]
    done: list[Any]
    message: str = ""


def write_frame(stream: IO[bytes], data: bytes) -> None:
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes | None:
    """Return what `write_frame` wrote, or None if the other process has ended."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None


class Worker:
    """Does one job after the other, and caches the codecs of the last schemas."""

    def __init__(self) -> None:
        self._codecs: LRUCache[bytes, Any] = LRUCache(KEPT)

    def do(self, job: Job) -> Result:
        from headrace.client.serializers.codecs.base import BadValue  # noqa: PLC0415  after the limits are set

        if isinstance(job.spec, str):
            return self._match(job.key, job.spec, job.items)
        done: list[Any] = []
        try:
            codec = self._codec(job)
            if codec is None:
                return Result("unknown", [])
            left = job.max_bytes
            for item in job.items:
                if job.what in _ENCODES:
                    encode = codec.encode if job.what == "encode" else codec.encode_plain
                    done.append(encode(marshal.loads(item)))  # noqa: S302  from our own process
                    left -= len(done[-1])
                else:
                    done.append(
                        codec.decode(item, tagged=job.what == "tagged", numbers=job.what == "numbers")
                    )
                    if len(marshal.dumps(done[-1])) > MAX_DECODED_BYTES:
                        done.pop()
                        raise BadValue(f"the decoded value has more than {MAX_DECODED_BYTES:,} bytes")  # noqa: TRY301
                if left < 0:
                    return Result("too large", [])
        except InvalidSchema as error:
            return Result("invalid", [], str(error))
        except BadValue as error:
            return Result("bad", done, str(error))
        return Result("done", done)

    def _match(self, key: bytes, text: str, items: list[bytes]) -> Result:
        from headrace.client.serializers.codecs.expressions import Expression, InvalidExpression, Misfit  # noqa: PLC0415

        done: list[bool | None] = []
        why = ""
        try:
            if key not in self._codecs:
                self._codecs[key] = Expression(text)
            matches = self._codecs[key].matches
            for item in items:
                try:
                    done.append(matches(marshal.loads(item)))  # noqa: S302  from our own process
                except Misfit as error:
                    done.append(None)
                    why = why or str(error)
        except InvalidExpression as error:
            return Result("invalid", [], str(error))
        return Result("done", done, why)

    def _codec(self, job: Job) -> Any:
        from headrace.client.serializers.codecs.codec import codec_of  # noqa: PLC0415

        assert not isinstance(job.spec, str), job.what
        if job.key not in self._codecs and job.spec is not None:
            schema, referenced = job.spec

            def resolve(reference: Reference) -> Schema:
                if reference not in referenced:
                    raise InvalidSchema(f"the reference {reference.name} cannot be resolved")
                return referenced[reference]

            self._codecs[job.key] = codec_of(parse(schema, resolve))
        return self._codecs.get(job.key)


def main() -> None:
    """Do jobs until the process that started us closes stdin."""
    if sys.platform == "linux":  # macOS refuses it
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C stops our parent, which closes stdin
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    cpu_s = float(sys.argv[1])
    os.nice(5)  # our parent has priority
    import headrace.client.serializers.codecs.codec  # noqa: PLC0415  its CPU time is not that of the first job

    worker = Worker()
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        job = Job(*pickle.loads(frame))  # noqa: S301  from our parent
        if job.what == "match":
            import headrace.client.serializers.codecs.expressions  # noqa: F401, PLC0415  only if it is needed
        many = job.what in {*_ENCODES, "match"}
        signal.setitimer(signal.ITIMER_PROF, cpu_s if many else cpu_s * DECODE_SHARE)
        result = worker.do(job)
        signal.setitimer(signal.ITIMER_PROF, 0)
        write_frame(sys.stdout.buffer, marshal.dumps(tuple(result)))


if __name__ == "__main__":
    main()
