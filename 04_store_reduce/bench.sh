#!/usr/bin/env bash
# bench.sh: what chapter 04 measures. make bench runs it; tables to stdout, CSV under build/.
#   accumulate.csv            time of each way to accumulate, by size
#   accumulate_tiles.csv      the same by size of tile, on 1 GiB
#   accumulate_ratios.csv     what reduce gains over red, and what it could gain at most
#   accumulate_counters.csv   what each way does, by ncu's counters (where ncu is installed)
set -eu
cd "$(dirname "$0")/.."
chapter=build/04_store_reduce
export LD_LIBRARY_PATH="${CUDA_LIBRARIES:-/usr/local/cuda/lib64}:${LD_LIBRARY_PATH:-}"
stamp="# $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1 |
  sed 's/, /, driver /'), $(date +%F)"

"$chapter/accumulate" --bench
sed -i "1i $stamp" "$chapter/accumulate.csv" "$chapter/accumulate_tiles.csv"

python3 - "$chapter" "$stamp" <<'PYTHON'
import csv, sys
chapter, stamp = sys.argv[1:]
rate = {}
for row in csv.DictReader(line for line in open(f"{chapter}/accumulate.csv") if line[0] != "#"):
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
with open(f"{chapter}/accumulate_ratios.csv", "w") as out:
    out.write(stamp + "\n")
    csv.writer(out, lineterminator="\n").writerows(table)
print("\nthe better reduce against the better red, by rate")
for row in table:
    print(f"{row[0]:>6}" + "".join(f"{cell:>36}" for cell in row[1:]))
PYTHON

if ! command -v ncu >/dev/null; then
  echo "ncu is not installed: no counters (Nsight Compute comes with the CUDA Toolkit)"
  exit 0
fi
printf '\n==== %s --profile under ncu\n' "${chapter#build/}/accumulate"
"$chapter/accumulate" --profile >"$chapter/profile.txt"
ncu --clock-control none --csv --print-units base --log-file "$chapter/ncu.csv" \
  -k regex:accumulate_kernel --metrics smsp__inst_executed.sum,\
l1tex__m_xbar2l1tex_read_bytes.sum,lts__t_sectors_op_red.sum,lts__t_sectors_op_read.sum,\
lts__t_sectors_op_write.sum,dram__bytes_read.sum,dram__bytes_write.sum \
  "$chapter/accumulate" --profile >/dev/null
python3 - "$chapter" "$stamp" <<'PYTHON'
import csv, sys
chapter, stamp = sys.argv[1:]
MIB = 1 << 20
ways = [line[:26].strip() for line in open(f"{chapter}/profile.txt") if " tiles of " in line]
counters = {}
rows = csv.DictReader(line for line in open(f"{chapter}/ncu.csv") if line.startswith('"'))
for row in rows:
    value = float(row["Metric Value"].replace(",", ""))
    counters.setdefault(row["ID"], {})[row["Metric Name"]] = value
header = ["way", "warp instructions", "MiB into SMs", "L2 red MiB", "L2 read MiB", "L2 write MiB",
          "DRAM read MiB", "DRAM write MiB"]
table = [header]
for way, c in zip(ways, counters.values(), strict=True):
    table.append([way, f"{c['smsp__inst_executed.sum']:.0f}"] + [f"{v / MIB:.1f}" for v in (
        c["l1tex__m_xbar2l1tex_read_bytes.sum"], 32 * c["lts__t_sectors_op_red.sum"],
        32 * c["lts__t_sectors_op_read.sum"], 32 * c["lts__t_sectors_op_write.sum"],
        c["dram__bytes_read.sum"], c["dram__bytes_write.sum"])])
with open(f"{chapter}/accumulate_counters.csv", "w") as out:
    out.write(stamp + "\n")
    csv.writer(out, lineterminator="\n").writerows(table)
for row in table:
    print(f"{row[0]:26}" + "".join(f"{cell:>18}" for cell in row[1:]))
PYTHON
