# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Completion times of requests by threshold, with polars: with_polars.py DIR"""
import sys
import polars as pl

requests = pl.read_parquet(f"{sys.argv[1]}/requests.parquet")
finished = requests.filter(pl.col("measured") & pl.col("rct_ns").is_not_null())
rct_us = pl.col("rct_ns") / 1e3
print(finished.group_by("param_onramp_threshold", maintain_order=True).agg(
    pl.len().alias("requests"), rct_us.mean().round(1).alias("mean_us"),
    rct_us.quantile(0.99, "higher").round(1).alias("p99_us")))
