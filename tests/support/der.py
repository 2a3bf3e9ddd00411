"""Elements of DER for tests."""


def element(tag: int, content: bytes) -> bytes:
    """Return one element of DER."""
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    return bytes([tag, 0x82]) + size.to_bytes(2, "big") + content
