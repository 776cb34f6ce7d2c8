#!/usr/bin/env bash
# price.sh [PROGRAM COMMITTED_CSV]: what each way of fetching a tile costs a thread: registers and
# instructions, less those of the kernel that fetches nothing.
#
# It needs cuobjdump, for the compiled code, and ncu and a GPU, to count while the program runs. The
# figures also go to build/CHAPTER/price.csv. Where one of the three is missing, the committed figures
# are printed, with the machine and the date that they are from.
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C # numbers with a decimal point, whatever the user's language: the columns are separated by commas
program=${1:-build/01_tiledcopy_baseline/tiledcopy_baseline}
committed=${2:-01_tiledcopy_baseline/price.csv}
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
THREADS_LAUNCHED=768 # 6 blocks of 128, in both programs

# The stamp as it is, the rest in columns where there is a column command.
show() {
  grep '^#' "$1"
  grep -v '^#' "$1" | { column -s, -t 2>/dev/null || grep -v '^#' "$1"; }
}

if ! command -v cuobjdump >/dev/null || ! command -v ncu >/dev/null ||
  ! nvidia-smi -L >/dev/null 2>&1; then
  echo "cuobjdump, ncu and a GPU are needed to measure this; the committed figures instead:"
  show "$committed"
  exit 0
fi
if [ ! -x "$program" ]; then
  echo "price.sh: $program is not built; run make first" >&2
  exit 2
fi
source common/make/bench-tools

work=$(dirname "$program")
csv=$work/price.csv
# Function names are mangled: _Z6scalarPKtmPt is scalar.
cuobjdump -res-usage "$program" 2>/dev/null | awk '
  $1 == "Function" { name = $2; sub(/^_Z[0-9]+/, "", name) }
  /REG:/ { match($0, /REG:[0-9]+/); print name, substr($0, RSTART + 4, RLENGTH - 4) }' \
  >"$work/price.registers"
cuobjdump -sass "$program" | awk '
  /Function :/ { name = $3; sub(/^_Z[0-9]+/, "", name) }
  /^ +\/\*[0-9a-f]+\*\/ / && !/ NOP/ { count[name]++ }
  END { for (name in count) print name, count[name] }' >"$work/price.code"
# True: each kernel that the program has was counted.
count_instructions() {
  # The program checks what it fetched, so its failure, too, is ncu's.
  ncu --clock-control none --csv --print-units base --metrics smsp__thread_inst_executed.sum \
    -k 'regex:^(scalar|vectors|cp_async|tma|nothing)$' "$program" --count >"$work/price.ncu" 2>&1 ||
    return 1
  awk -F'","' '/smsp__thread_inst_executed/ {
    name = $5; sub(/\(.*/, "", name); value = $NF; gsub(/[",]/, "", value); print name, value }' \
    "$work/price.ncu" >"$work/price.executed"
  awk '
    function kernel(mangled) { match(mangled, /^(scalar|vectors|cp_async|tma|nothing)/)
                               return RLENGTH > 0 ? substr(mangled, 1, RLENGTH) : "" }
    FILENAME ~ /executed$/ { if ($2 ~ /^[0-9.]+$/ && $2 > 0) counted[$1] = 1; next }
    kernel($1) != "" { wanted[kernel($1)] = 1 }
    END { lacks = !("nothing" in wanted)
          for (name in wanted) if (!(name in counted)) lacks = 1
          exit lacks }' "$work/price.executed" "$work/price.code"
}

# ncu may count nothing while other processes use the GPU, so it has three chances.
measured=no
for attempt in 1 2 3; do
  if count_instructions; then
    measured=yes
    break
  fi
done
if [ "$measured" != yes ]; then
  cat "$work/price.ncu" >&2
  echo "price.sh: ncu could not count the instructions of $program; is the GPU in use?" >&2
  exit 1
fi

{
  echo "# $gpu_and_driver, nvcc $(nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'), $(date +%F)"
  echo "way,registers,instructions in the code,executed per thread"
  awk -v threads="$THREADS_LAUNCHED" '
    function kernel(mangled) { match(mangled, /^(scalar|vectors|cp_async|tma|nothing)/)
                               return RLENGTH > 0 ? substr(mangled, 1, RLENGTH) : "" }
    FILENAME ~ /registers$/ { registers[kernel($1)] = $2 }
    FILENAME ~ /code$/ { code[kernel($1)] = $2 }
    FILENAME ~ /executed$/ { executed[$1] = $2 / threads }
    END {
      split("scalar vectors cp_async tma", order, " ")
      for (i = 1; i <= 4; i++) if (order[i] in executed)
        printf "%s,%d,%d,%.1f\n", order[i], registers[order[i]],
               code[order[i]] - code["nothing"], executed[order[i]] - executed["nothing"]
    }' "$work/price.registers" "$work/price.code" "$work/price.executed"
} >"$csv"
show "$csv"
