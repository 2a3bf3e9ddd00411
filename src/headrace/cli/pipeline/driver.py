"""The program that spark-submit runs on a cluster:  driver.py shop.py --state s3a://bucket/state

Its arguments are those of `headrace pipeline run`, whose Spark session is the one of spark-submit.
"""

import sys

from headrace.cli.main import main

if __name__ == "__main__":
    sys.argv[1:1] = ["pipeline", "run"]
    main()
