"""What keys and values are outside of the log: text, JSON, or what a schema registry knows."""
