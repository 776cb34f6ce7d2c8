#!/usr/bin/env bash
# bench.sh: what chapter 06 measures. make bench runs it; tables to stdout, CSV under build/.
#   boxes.csv            several 2D boxes against one 3D box
#   bank_conflicts.csv   passes and conflicts as predicted, and as ncu counts them (where installed)
set -eu
cd "$(dirname "$0")/.."
chapter=build/06_swizzle_3d
export LD_LIBRARY_PATH="${CUDA_LIBRARIES:-/usr/local/cuda/lib64}:${LD_LIBRARY_PATH:-}"
stamp="# $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1 |
  sed 's/, /, driver /'), $(date +%F)"

"$chapter/boxes" --bench
sed -i "1i $stamp" "$chapter/boxes.csv"

if ! command -v ncu >/dev/null; then
  echo "ncu is not installed: no counters (Nsight Compute comes with the CUDA Toolkit)"
  exit 0
fi
printf '\n==== %s under ncu\n' "${chapter#build/}/bank_conflicts"
"$chapter/bank_conflicts" >"$chapter/predicted.txt"
ncu --clock-control none --csv --print-units base --log-file "$chapter/ncu.csv" \
  -k regex:column_read_kernel --metrics \
l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum,\
l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum \
  "$chapter/bank_conflicts" >/dev/null
python3 - "$chapter" "$stamp" <<'PYTHON'
import csv, re, sys
chapter, stamp = sys.argv[1:]
predicted = []
for line in open(f"{chapter}/predicted.txt"):
    number = r" +(\d+)"
    pattern = number + r" +(none|32B|64B|128B)" + number + r" +(?:\d ){8}" + 4 * number + "$"
    found = re.match(pattern, line)
    if found:
        predicted.append(list(found.groups()))
counters = {}
rows = csv.DictReader(line for line in open(f"{chapter}/ncu.csv") if line.startswith('"'))
for row in rows:
    value = float(row["Metric Value"].replace(",", ""))
    counters.setdefault(row["ID"], {})[row["Metric Name"]] = value
header = ["row bytes", "swizzle", "bytes read by a thread", "passes predicted", "passes counted",
          "conflicts predicted", "conflicts counted"]
table = [header]
wrong = 0
for line, c in zip(predicted, counters.values(), strict=True):
    row, mode, read, reads, passes, least, conflicts = line
    counted = [f"{c['l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum']:.0f}",
               f"{c['l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum']:.0f}"]
    table.append([row, mode, read, passes, counted[0], conflicts, counted[1]])
    wrong += conflicts != counted[1]
with open(f"{chapter}/bank_conflicts.csv", "w") as out:
    out.write(stamp + "\n")
    csv.writer(out, lineterminator="\n").writerows(table)
for row in table:
    print("".join(f"{cell:>24}" for cell in row))
print(f"{len(table) - 1 - wrong} of {len(table) - 1} conflict counts as predicted")
PYTHON
