"""`headrace.Consumer`: what is read, how far, and as what."""
