"""The controller: one broker decides who leads what, writes it to ZooKeeper, and tells the others.

`runner.py` handles one event at a time. `model.py` is the cluster as it knows it, and decides which changes
are due (pure); `transactions.py` writes them, fenced by the controller epoch; `channel.py` with
`updates.py` tells every broker. `topic_admin.py`, `placement.py` and `config_admin.py` answer requests of
clients.

`broker/membership` runs it on the elected broker. Begin with `model.py`, then `runner.py`.
"""
