#!/usr/bin/env bash
# bench.sh: what chapter 05 measures. make bench runs it; tables to stdout, CSV under build/.
#   shared_stream.csv            time with and without multicast, clusters of 1, 2, 4 and 8
#   proxy_fences.csv             clocks of each form of fence.proxy.async
#   shared_stream_counters.csv   bytes read from L2, by ncu's counters (where ncu is installed)
set -eu
cd "$(dirname "$0")/.."
chapter=build/05_multicast
source common/make/bench-tools

for program in shared_stream proxy_fences; do
  "$chapter/$program" --bench
  stamp_tables "$chapter/$program.csv"
done

count_by_ncu stream_kernel lts__t_sectors_op_read.sum,\
l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum,\
l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld_dest_multicast.sum \
  shared_stream --profile
PYTHONPATH=common/book python3 - "$chapter" "$stamp" <<'PYTHON'
import sys, tables
chapter, stamp = sys.argv[1:]
MIB = 1 << 20
kinds = [line[:23].strip() for line in open(f"{chapter}/printed.txt") if " tiles into " in line]
header = ["kind", "read from L2 MiB", "into SMs by TMA MiB", "of that by multicast MiB"]
table = [header]
into = "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld"
for kind, c in zip(kinds, tables.counted(f"{chapter}/ncu.csv"), strict=True):
    table.append([kind] + [f"{v / MIB:.1f}" for v in (
        32 * c["lts__t_sectors_op_read.sum"], c[into + ".sum"], c[into + "_dest_multicast.sum"])])
tables.publish(f"{chapter}/shared_stream_counters.csv", stamp, table, "24", ">26")
PYTHON
