# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Completion times of requests by threshold, with DuckDB: with_duckdb.py DIR"""
import sys
import duckdb

table = duckdb.sql(f"""
    select param_onramp_threshold, count(*) as requests, round(avg(rct_ns) / 1e3, 1) as mean_us,
        round(quantile_disc(rct_ns, 0.99) / 1e3, 1) as p99_us
    from '{sys.argv[1]}/requests.parquet' where measured and rct_ns is not null
    group by all order by min(run)
""")
print(str(table).rstrip())
