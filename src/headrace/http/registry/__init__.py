"""The schema registry's REST API, as Confluent's registry has it."""
