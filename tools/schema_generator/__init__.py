"""Turns kio's per-version classes into one class per message: read, merge, name, emit."""
