"""One file per API: what it does here, version by version, then a function that translates and delegates."""
