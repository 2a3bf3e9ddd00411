"""`make dist`: build wheel and sdist, check them, install them into empty environments, and use them."""
