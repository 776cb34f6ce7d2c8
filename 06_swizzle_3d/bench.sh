#!/usr/bin/env bash
# bench.sh: what chapter 06 measures. make bench runs it; tables to stdout, CSV under build/.
#   boxes.csv            several 2D boxes against one 3D box
#   bank_conflicts.csv   passes and conflicts as predicted, and as ncu counts them (where installed)
set -eu
cd "$(dirname "$0")/.."
chapter=build/06_swizzle_3d
source common/make/bench-tools

"$chapter/boxes" --bench
stamp_tables "$chapter/boxes.csv"

count_by_ncu column_read_kernel l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum,\
l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum \
  bank_conflicts
PYTHONPATH=common/book python3 - "$chapter" "$stamp" <<'PYTHON'
import re, sys, tables
chapter, stamp = sys.argv[1:]
predicted = []
for line in open(f"{chapter}/printed.txt"):
    number = r" +(\d+)"
    pattern = number + r" +(none|32B|64B|128B)" + number + r" +(?:\d ){8}" + 4 * number + "$"
    found = re.match(pattern, line)
    if found:
        predicted.append(list(found.groups()))
header = ["row bytes", "swizzle", "bytes read by a thread", "passes predicted", "passes counted",
          "conflicts predicted", "conflicts counted"]
table = [header]
wrong = 0
for line, c in zip(predicted, tables.counted(f"{chapter}/ncu.csv"), strict=True):
    row, mode, read, reads, passes, least, conflicts = line
    counted = [f"{c['l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum']:.0f}",
               f"{c['l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum']:.0f}"]
    table.append([row, mode, read, passes, counted[0], conflicts, counted[1]])
    wrong += conflicts != counted[1]
tables.publish(f"{chapter}/bank_conflicts.csv", stamp, table, ">24", ">24")
print(f"{len(table) - 1 - wrong} of {len(table) - 1} conflict counts as predicted")
PYTHON
