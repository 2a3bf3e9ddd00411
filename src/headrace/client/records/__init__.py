"""Records one by one: writing, reading, following and searching."""
