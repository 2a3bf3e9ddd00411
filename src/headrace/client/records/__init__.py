"""Single records: writing, reading, following and searching."""
