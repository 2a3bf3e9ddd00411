"""Where the state of a pipeline is stored: a local directory, or an object store."""
