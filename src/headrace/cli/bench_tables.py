"""How the figures of a bench look."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from headrace.cli.bench_cpu import OTHERS
from headrace.cli.bench_run import Outcome
from headrace.cli.session import UNKNOWN, table, together
from headrace.cli.texts import count, size
from headrace.client.load.figures import Latency, Throughput, Used

if TYPE_CHECKING:
    from rich.console import RenderableType

_LIMITS: Final = {
    "client": "the client is the limit: one of its threads never rests, and the brokers could do more. "
    "More --clients would show how much.",
    "broker": "the broker is the limit: one of its threads never rests.",
    "machine": "the machine is the limit: clients and brokers share its cores, and use them up. "
    "Clients on another machine would leave more to the brokers.",
    OTHERS: "other programs are the limit: they use up the machine's cores, and these figures say little. "
    "Try again when it is quiet.",
    "unknown": "",
}


def draw(found: Outcome) -> "RenderableType":
    """What was measured on what, the figures, and what they were limited by."""
    parts: list[RenderableType] = [_head(found)]
    if found.throughput:
        columns = ["", "records/s", "bytes/s", "records", "seconds", "client cores", "broker cores", "limit"]
        parts.append(table(columns, map(_row, found.throughput)))
    if found.received is not None and found.acknowledged is not None:
        columns = [f"at {found.plan.rate:,} records/s", "p50", "p95", "p99", "p99.9", "max"]
        rows = [("acknowledged", *_times(found.acknowledged)), ("received", *_times(found.received))]
        parts.append(table(columns, rows))
    if remarks := list(_remarks(found)):
        parts.append("\n".join(remarks))
    return together(parts)


def _head(found: Outcome) -> str:
    plan = found.plan
    return (
        f"{count(found.brokers, 'broker')}, {count(plan.partitions, 'partition')}, "
        f"{count(plan.replicas, 'replica')} each, acks={plan.acks}, records of {plan.record_size:,} bytes, "
        f"{count(plan.clients, 'client')}"
    )


def _row(each: Throughput) -> tuple[object, ...]:
    return (
        each.phase if each.compression == "none" else f"{each.phase}, {each.compression}",
        f"{each.records_per_s:,.0f}",
        f"{size(each.bytes_per_s)}",
        f"{each.records:,}",
        f"{each.seconds:.1f}",
        _used(each.clients),
        UNKNOWN if each.brokers is None else _used(each.brokers),
        UNKNOWN if each.limit == "unknown" else each.limit,
    )


def _used(used: Used) -> str:
    return f"{used.cores:.2f}"


def _times(latency: Latency) -> tuple[str, ...]:
    every = (latency.p50, latency.p95, latency.p99, latency.p999, latency.max)
    return tuple(f"{each:.2f} ms" for each in every)


def _remarks(found: Outcome) -> Iterator[str]:
    """Each limit once, with the phases that it was one for."""
    phases: dict[str, dict[str, None]] = {}
    for each in found.throughput:
        if sentence := says(each):
            phases.setdefault(sentence, {})[each.phase] = None
    for sentence, limited in phases.items():
        yield f"{' and '.join(limited)}: {sentence}"


def says(each: Throughput) -> str:
    """What its limit means, and what to do; nothing where it is not known."""
    if each.limit == "machine" and each.brokers is None:
        return "the machine is the limit: the clients use its cores up, and the brokers could do more."
    return _LIMITS[each.limit]
