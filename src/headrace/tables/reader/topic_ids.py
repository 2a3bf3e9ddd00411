"""Topic ids as Kafka's tools print them."""

from base64 import urlsafe_b64decode, urlsafe_b64encode


def show_topic_id(topic_id: bytes) -> str | None:
    """Return a topic id as Kafka's tools print it; None if the broker has none (before Kafka 2.8)."""
    return urlsafe_b64encode(topic_id).rstrip(b"=").decode() if any(topic_id) else None


def parse_topic_id(text: str | None) -> bytes:
    """Return a topic id that `show_topic_id` has printed; zeros for None."""
    return bytes(16) if text is None else urlsafe_b64decode(f"{text}==")
