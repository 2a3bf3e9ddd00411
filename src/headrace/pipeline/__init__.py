"""Pipelines on Spark: from topics, through functions of DataFrames, into topics and tables."""
