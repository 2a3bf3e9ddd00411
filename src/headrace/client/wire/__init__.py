"""The wire client: connections, requests, and which broker gets them."""
