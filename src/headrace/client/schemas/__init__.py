"""The client of a schema registry."""
