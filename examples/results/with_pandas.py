# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Completion times of requests by threshold, with pandas: with_pandas.py DIR"""
import sys
import pandas as pd

requests = pd.read_parquet(f"{sys.argv[1]}/requests.parquet")
finished = requests[requests.measured & requests.rct_ns.notna()]
rct_us = (finished.rct_ns / 1e3).groupby(finished.param_onramp_threshold, sort=False)
table = pd.DataFrame({"requests": rct_us.size(), "mean_us": rct_us.mean(),
                      "p99_us": rct_us.quantile(0.99, interpolation="higher")})
print(table.round(1).reset_index().to_string(index=False))
