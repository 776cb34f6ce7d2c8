#!/usr/bin/env bash
# bench.sh: what chapter 07 measures. make bench runs it; tables to stdout, CSV under build/.
#   ladder.csv, small.csv    every rung and the libraries at four sizes; small_shapes at small ones
#   split.csv                four ways to add the slices of a split k
#   alone.csv                rungs with and without multicast
#   ncu.csv                  the rungs by ncu, if that is installed, on this GPU and by the emulator's clock
#   attention.csv            the attention programs, and PyTorch's where it is installed
#   versus.csv, rested.csv   library/, cuBLAS and cuBLASLt at the eight products of the README, hot and with rests
#   shapes.csv, shapes.svg   the same, hot, at the products of SHAPES (a file of lines "m n k"; default: the 100
#                            that seed 2026 draws)
#   wgmma_types.csv          clocks of a wgmma of each type
#   features.csv             what epilogues, types and layouts cost
set -euo pipefail
cd "$(dirname "$0")/.."
here=07_pipelined_gemm
ladder=build/$here library=build/$here/library attention=build/$here/attention
source common/make/bench-tools
{
  echo "# $stamp"
  python3 $here/attention/tools/attention.py $attention/attention_serial $attention/attention_overlap $attention/attention
} | tee $attention/attention.csv
$ladder/wgmma_types --bench
$ladder/bench_split --bench
stamp_tables $ladder/{wgmma_types,split}.csv
if [ -x $ladder/bench_ladder ]; then
  $ladder/bench_ladder --bench
  python3 $here/tools/alone.py $ladder/alone.csv
  tools=$here/library/tools
  $library/bench_shapes --shapes $tools/eight.txt --csv $library/eight.csv
  python3 $tools/shapes.py table $library/eight.csv $library/versus.csv
  $library/bench_shapes --shapes $tools/eight.txt --csv $library/eight.csv --rest 20 --milliseconds 15 --rounds 5
  python3 $tools/shapes.py table $library/eight.csv $library/rested.csv
  python3 $tools/shapes.py draw 2026 >$library/drawn.txt
  $library/bench_shapes --shapes "${SHAPES:-$library/drawn.txt}" --csv $library/shapes.csv
  python3 $tools/shapes.py plot $library/shapes.csv $library/shapes.svg
  $library/bench_features --bench | sed -n '/^feature,/,$p' | grep , | tee $library/features.csv
  if command -v ncu >/dev/null; then python3 $here/tools/evidence.py $ladder/ncu.csv; fi
  for table in $ladder/{ladder,alone,small,ncu}.csv $library/{versus,rested,shapes,features}.csv; do
    if [ -e $table ]; then stamp_tables $table; fi
  done
else
  echo "bench_ladder is not built: cuBLAS is not in this toolkit"
fi
