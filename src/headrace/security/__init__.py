"""Who sends a request, over which listener, and what that principal may do. Only TLS reads files."""
