"""Numbers in Prometheus' text format. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from headrace.protocol.broker_metrics import GAUGE, HISTOGRAM, BrokerMetricsResponse, Family, Sample

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SUM: Final = "sum"  # stands among a histogram's bounds

_LABEL: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})


def exposition(counted: Mapping[int, BrokerMetricsResponse], more: Iterable[Family] = ()) -> str:
    """All of it: what brokers have counted, each with its number as a label, and families of our own."""
    return "".join(f"{line}\n" for line in _lines([*merged(counted), *more]))


def merged(counted: Mapping[int, BrokerMetricsResponse]) -> list[Family]:
    """Families of the same name together, with the label `broker` before their own."""
    found: dict[str, tuple[Family, list[Sample]]] = {}
    for broker_id, answer in sorted(counted.items()):
        for family in answer.families:
            _, samples = found.setdefault(family.name, (family, []))
            samples += [
                Sample(labels=[str(broker_id), *each.labels], value=each.value) for each in family.samples
            ]
    return [
        Family(
            name=family.name,
            kind=family.kind,
            help=family.help,
            labels=["broker", *family.labels],
            samples=samples,
        )
        for family, samples in found.values()
    ]


def gauge(
    name: str, help_: str, labels: Sequence[str], samples: Iterable[tuple[Sequence[str], float]]
) -> Family:
    """A family of numbers that go up and down."""
    return Family(
        name=name,
        kind=GAUGE,
        help=help_,
        labels=labels,
        samples=[Sample(labels=values, value=value) for values, value in samples],
    )


def _lines(families: Iterable[Family]) -> Iterator[str]:
    for family in families:
        if not family.samples:
            continue
        yield f"# HELP {family.name} {family.help.translate(_HELP)}"
        yield f"# TYPE {family.name} {family.kind}"
        for sample in family.samples:
            yield _histogram_line(family, sample) if family.kind == HISTOGRAM else _line(family, sample)


def _line(family: Family, sample: Sample) -> str:
    return f"{family.name}{_labels(family.labels, sample.labels)} {_number(sample.value)}"


def _histogram_line(family: Family, sample: Sample) -> str:
    """A bucket, or the sum; the bucket of everything is said again as the count."""
    *values, bound = sample.labels
    alone = _labels(family.labels[:-1], values)
    if bound == SUM:
        return f"{family.name}_sum{alone} {_number(sample.value)}"
    line = f"{family.name}_bucket{_labels(family.labels, sample.labels)} {_number(sample.value)}"
    return line if bound != "+Inf" else f"{line}\n{family.name}_count{alone} {_number(sample.value)}"


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    """`{topic="orders"}`; a label without a value is left out, as if it were not there."""
    said = ",".join(
        f'{name}="{value.translate(_LABEL)}"' for name, value in zip(names, values, strict=True) if value
    )
    return f"{{{said}}}" if said else ""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
