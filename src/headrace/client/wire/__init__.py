"""Kafka's protocol as a client speaks it: connections, and whom to ask what."""
