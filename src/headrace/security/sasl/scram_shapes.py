"""What a SCRAM challenge shows of a credential, so that a user who does not exist gets a similar one.

Tools differ in the iterations and the salts of the credentials that they make: Java's kafka-configs.sh makes
salts of 25 or 26 digits and small letters, librdkafka's are 64 bytes. A name without a credential gets
the iterations and the kind of salt of one of the stored credentials, more common ones more often. The choice
depends on the name only, as long as the stored credentials do not change much.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from headrace.security.sasl.scram import MIN_ITERATIONS, SALT_BYTES, ScramCredential

_BASE36: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"
_KEY_BITS: Final = 64  # of a key, which choose a shape


class ScramShape(NamedTuple):
    """The visible properties of a credential."""

    iterations: int
    salt_bytes: int
    is_base36: bool  # whether the salt consists of digits and small letters

    @classmethod
    def of(cls, credential: ScramCredential) -> "ScramShape":
        salt = credential.salt
        return cls(credential.iterations, len(salt), all(byte in _BASE36 for byte in salt))

    def salt(self, key: bytes) -> bytes:
        """Return a salt of this kind, always the same one for a key."""
        made = hashlib.shake_256(b"salt" + key).digest(self.salt_bytes)
        return bytes(_BASE36[byte % len(_BASE36)] for byte in made) if self.is_base36 else made


_DEFAULT: Final = ScramShape(MIN_ITERATIONS, SALT_BYTES, is_base36=False)


class ScramShapes:
    """How many stored credentials of one mechanism have each shape."""

    def __init__(self) -> None:
        self._counts: Counter[ScramShape] = Counter()

    def replace(self, old: Iterable[ScramCredential], new: Iterable[ScramCredential]) -> None:
        """Count `new` credentials instead of `old` ones."""
        self._counts.update(map(ScramShape.of, new))
        for shape in map(ScramShape.of, old):
            self._counts[shape] -= 1
            if not self._counts[shape]:
                del self._counts[shape]

    def choose(self, key: bytes) -> ScramShape:
        """Return one of the shapes, each as often as credentials have it, always the same one for a key."""
        place = int.from_bytes(hashlib.sha256(b"shape" + key).digest()[: _KEY_BITS // 8], "big")
        rank = place * self._counts.total() >> _KEY_BITS
        for shape in sorted(self._counts):
            rank -= self._counts[shape]
            if rank < 0:
                return shape
        return _DEFAULT
