"""What the producers of the compatibility tests send."""

from dataclasses import dataclass, replace
from typing import Final

FIRST_TIMESTAMP_MS: Final = 1_700_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A record that has no place yet."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int

    @property
    def fits_kafka_python(self) -> bool:
        """kafka-python refuses a record with neither key nor value."""
        return (self.key, self.value) != (None, None)

    def without_null_headers(self) -> "Sample":
        """kafka-python refuses those too."""
        return replace(self, headers=tuple(each for each in self.headers if each[1] is not None))


def samples(count: int, *, size: int = 20) -> list[Sample]:
    """Records of every shape: with and without key, value and headers; timestamps that also step back."""
    return [
        Sample(
            key=None if n % 5 == 0 else b"key-%d" % (n % 7),
            value=None if n % 6 == 0 else b"" if n % 6 == 1 else (b"value-%d " % n).ljust(size, b"."),
            headers=(("n", b"%d" % n), ("empty", b""), ("null", None)) if n % 3 == 0 else (),
            timestamp_ms=FIRST_TIMESTAMP_MS + n * 1000 - (5000 if n % 4 == 3 else 0),
        )
        for n in range(count)
    ]


def rewrites(count: int, *, size: int = 300) -> list[Sample]:
    """Twenty keys over and over, now and then a tombstone; every tenth key is never written again."""
    return [
        Sample(
            key=b"once-%d" % n if n % 10 == 0 else b"key-%d" % (n % 20),
            value=None if n % 9 == 8 else (b"value-%d " % n).ljust(size, b"."),
            timestamp_ms=FIRST_TIMESTAMP_MS + n,
        )
        for n in range(count)
    ]
