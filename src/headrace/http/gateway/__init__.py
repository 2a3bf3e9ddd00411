"""Produce and consume over HTTP, with the API of Confluent's REST proxy."""
