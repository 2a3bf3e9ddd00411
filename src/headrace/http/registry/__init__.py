"""The schema registry's REST API."""
