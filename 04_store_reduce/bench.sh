#!/usr/bin/env bash
# bench.sh: what chapter 04 measures. make bench runs it; tables to stdout, CSV under build/.
#   accumulate.csv            time of each way to accumulate, by size
#   accumulate_tiles.csv      the same by size of tile, on 1 GiB
#   accumulate_ratios.csv     what reduce gains over red, and what it could gain at most
#   accumulate_counters.csv   what each way does, by ncu's counters (where ncu is installed)
set -eu
cd "$(dirname "$0")/.."
chapter=build/04_store_reduce
source common/make/bench-tools

"$chapter/accumulate" --bench
stamp_tables "$chapter/accumulate.csv" "$chapter/accumulate_tiles.csv"

PYTHONPATH=common/book python3 - "$chapter" "$stamp" <<'PYTHON'
import sys, tables
chapter, stamp = sys.argv[1:]
rate = {}
for row in tables.records(f"{chapter}/accumulate.csv"):
    rate.setdefault(row["blocks"], {}).setdefault(row["MiB"], {})[row["way"]] = float(row["GB/s"])
table = [["MiB", "reduce / red", "prefetched reduce / red", "prefetched reduce / prefetched red",
          "cudaMemcpy / red"]]
for size, ways in next(iter(rate.values())).items():
    red = max(ways["red"], ways["red.v4"])
    reduce = max(ways["bulk reduce"], ways["tensor reduce"])
    prefetched = max(ways["bulk reduce, prefetched"], ways["tensor reduce, prefetched"])
    table.append([size] + [f"{ratio:.2f}" for ratio in (
        reduce / red, prefetched / red, prefetched / ways["red.v4, prefetched"],
        ways["cudaMemcpy"] / red)])
print("\nthe better reduce against the better red, by rate")
tables.publish(f"{chapter}/accumulate_ratios.csv", stamp, table, ">6", ">36")
PYTHON

count_by_ncu accumulate_kernel smsp__inst_executed.sum,\
l1tex__m_xbar2l1tex_read_bytes.sum,lts__t_sectors_op_red.sum,lts__t_sectors_op_read.sum,\
lts__t_sectors_op_write.sum,dram__bytes_read.sum,dram__bytes_write.sum \
  accumulate --profile
PYTHONPATH=common/book python3 - "$chapter" "$stamp" <<'PYTHON'
import sys, tables
chapter, stamp = sys.argv[1:]
MIB = 1 << 20
ways = [line[:26].strip() for line in open(f"{chapter}/printed.txt") if " tiles of " in line]
header = ["way", "warp instructions", "MiB into SMs", "L2 red MiB", "L2 read MiB", "L2 write MiB",
          "DRAM read MiB", "DRAM write MiB"]
table = [header]
for way, c in zip(ways, tables.counted(f"{chapter}/ncu.csv"), strict=True):
    table.append([way, f"{c['smsp__inst_executed.sum']:.0f}"] + [f"{v / MIB:.1f}" for v in (
        c["l1tex__m_xbar2l1tex_read_bytes.sum"], 32 * c["lts__t_sectors_op_red.sum"],
        32 * c["lts__t_sectors_op_read.sum"], 32 * c["lts__t_sectors_op_write.sum"],
        c["dram__bytes_read.sum"], c["dram__bytes_write.sum"])])
tables.publish(f"{chapter}/accumulate_counters.csv", stamp, table, "26", ">18")
PYTHON
