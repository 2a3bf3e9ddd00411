"""Produce and consume over HTTP, in the manner of the Confluent REST proxy."""
