"""`headrace doctor`: reads facts of the machine and of log directories, and prints findings with advice.

`commands.py` is the command, `machine.py` reads /proc and the limits of this machine, `data.py` reads log
directories without changing them. What the facts mean is decided in `headrace.client.doctor`, which is
pure.
"""
