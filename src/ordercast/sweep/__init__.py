"""Thousands of simulated runs as one Spark job: what each configuration keeps and what it costs."""
