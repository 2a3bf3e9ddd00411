"""Who sends a request: credentials, sessions of the console, and the clients that act for each user."""
