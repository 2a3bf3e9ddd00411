"""Kafka's wire protocol: bytes to messages and back. Knows no other package of ours."""
