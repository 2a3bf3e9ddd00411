"""The settings of brokers, topics and groups: each declared once, with Kafka's name and default.

`setting.py` is how a setting is declared and parsed. One file per subject declares them;
`without_effect.py` lists those of Kafka that do nothing here. `config.py` layers defaults, file,
environment and dynamic values; `config_rules.py` validates changes; `describe.py` answers DescribeConfigs.

Everything in the broker and the commands that start one may import this package. Begin with `setting.py`.
"""
