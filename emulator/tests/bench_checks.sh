#!/usr/bin/env bash
# bench_checks.sh PROGRAM: what the emulator's checks cost. Runs each loop of bench_checks with the checks off
# and on in turn, three times on one host thread, and prints the best of each and their ratio. Half of the
# machine's cores measure different loops at the same time.
set -euo pipefail
if [ $# -ne 1 ] || [ ! -x "$1" ]; then
  echo "usage: bench_checks.sh PROGRAM, the built emulator/tests/bench_checks" >&2
  exit 2
fi
here=$(dirname "$(readlink -f "$0")")
export EMULATOR_THREADS=1 program=$1 emulate=$here/../emulate
at_once=$((($(nproc) + 1) / 2))

measure() { # LOOP: lines of NAME MILLISECONDS CHECK
  local check
  for check in off on; do
    EMULATOR_CHECK=$check "$emulate" "$program" "$1" | sed -n "s/ ms\$/ $check/p"
  done
}
export -f measure
for turn in 1 2 3; do
  "$emulate" "$program" --list | cut -d' ' -f1 | xargs -P "$at_once" -I LOOP bash -c 'measure LOOP'
done | awk '
  { key = $1 " " $3
    if (!(key in best) || $2 < best[key]) best[key] = $2
    if ($3 == "on" && !($1 in order)) { order[$1] = ++count; name[count] = $1 } }
  END {
    printf "%-20s %10s %10s %8s\n", "one host thread", "off, ms", "on, ms", "ratio"
    for (i = 1; i <= count; i++) {
      off = best[name[i] " off"]; on = best[name[i] " on"]; ratio = on / off
      printf "%-20s %10.1f %10.1f %8.2f\n", name[i], off, on, ratio
      all_off += off; all_on += on; within += ratio <= 2; if (ratio > most) most = ratio
    }
    printf "%d of %d at most 2, all together %.2f, the most %.2f\n", within, count, all_on / all_off, most
  }'
