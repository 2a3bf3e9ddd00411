"""Records one by one: written, read, followed and looked for."""
