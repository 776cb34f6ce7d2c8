#!/usr/bin/env bash
# bench.sh: what chapter 05 measures. make bench runs it; tables to stdout, CSV under build/.
#   shared_stream.csv            time with and without multicast, clusters of 1, 2, 4 and 8
#   proxy_fences.csv             clocks of each form of fence.proxy.async
#   shared_stream_counters.csv   bytes read from L2, by ncu's counters (where ncu is installed)
set -eu
cd "$(dirname "$0")/.."
chapter=build/05_multicast
export LD_LIBRARY_PATH="${CUDA_LIBRARIES:-/usr/local/cuda/lib64}:${LD_LIBRARY_PATH:-}"
stamp="# $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1 |
  sed 's/, /, driver /'), $(date +%F)"

for program in shared_stream proxy_fences; do
  "$chapter/$program" --bench
  sed -i "1i $stamp" "$chapter/$program.csv"
done

if ! command -v ncu >/dev/null; then
  echo "ncu is not installed: no counters (Nsight Compute comes with the CUDA Toolkit)"
  exit 0
fi
printf '\n==== %s --profile under ncu\n' "${chapter#build/}/shared_stream"
"$chapter/shared_stream" --profile >"$chapter/profile.txt"
ncu --clock-control none --csv --print-units base --log-file "$chapter/ncu.csv" \
  -k regex:stream_kernel --metrics lts__t_sectors_op_read.sum,\
l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum,\
l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld_dest_multicast.sum \
  "$chapter/shared_stream" --profile >/dev/null
python3 - "$chapter" "$stamp" <<'PYTHON'
import csv, sys
chapter, stamp = sys.argv[1:]
MIB = 1 << 20
kinds = [line[:23].strip() for line in open(f"{chapter}/profile.txt") if " tiles into " in line]
counters = {}
rows = csv.DictReader(line for line in open(f"{chapter}/ncu.csv") if line.startswith('"'))
for row in rows:
    value = float(row["Metric Value"].replace(",", ""))
    counters.setdefault(row["ID"], {})[row["Metric Name"]] = value
header = ["kind", "read from L2 MiB", "into SMs by TMA MiB", "of that by multicast MiB"]
table = [header]
into = "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld"
for kind, c in zip(kinds, counters.values(), strict=True):
    table.append([kind] + [f"{v / MIB:.1f}" for v in (
        32 * c["lts__t_sectors_op_read.sum"], c[into + ".sum"], c[into + "_dest_multicast.sum"])])
with open(f"{chapter}/shared_stream_counters.csv", "w") as out:
    out.write(stamp + "\n")
    csv.writer(out, lineterminator="\n").writerows(table)
for row in table:
    print(f"{row[0]:24}" + "".join(f"{cell:>26}" for cell in row[1:]))
PYTHON
