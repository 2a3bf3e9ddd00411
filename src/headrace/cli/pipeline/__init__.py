"""`headrace pipeline`: init, check, explain, graph, run, status, stop, replay, pack and test.

`commands.py` lists the verbs and opens the pipeline in a file. The other files are one verb each. `driver.py`
is the program that spark-submit runs on a cluster; `triggered.py` runs projects of Spark's own Declarative
Pipelines. What a pipeline does is in `headrace.pipeline`.
"""
