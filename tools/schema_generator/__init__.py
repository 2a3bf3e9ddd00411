"""Turns Kafka's message definitions into one class per message: read, name, emit."""
