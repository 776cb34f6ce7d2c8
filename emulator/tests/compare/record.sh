#!/usr/bin/env bash
# record.sh [JOBS [PROGRAM...]]: what compute-sanitizer's four tools say of each pitfall, and of its corrected twin, on the
# GPU of this machine. Writes emulator/tests/compare/sanitizer.csv, from which table.py makes emulator/COMPARED.md; a twin
# of which no tool says anything is left out.
#
# Each program runs in a process of its own with a time limit, JOBS of them at a time. A program that hangs is
# killed, and so is the tool that watches it: "no end" then means that the tool said nothing in that time. With
# programs named, only their lines are printed, as they come.
set -eu
cd "$(dirname "$0")/../../.."
jobs=${1:-8}
limit=15 # seconds
command -v compute-sanitizer >/dev/null || { echo "record.sh: compute-sanitizer is not on PATH" >&2; exit 2; }
nvidia-smi >/dev/null || { echo "record.sh: needs a GPU" >&2; exit 2; }
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# One line of CSV: chapter, program, twin, and for each tool the number of errors and the first message.
one() { # LOGS LIMIT PROGRAM
  local program=$3 tool log code errors message twin=pitfall answers=""
  [[ $program == */fixed/* ]] && twin=corrected
  for tool in memcheck racecheck synccheck initcheck; do
    log=$1/$(tr / _ <<<"$program").$tool
    code=0
    timeout -k 2 "$2" compute-sanitizer --tool "$tool" "$program" >"$log" 2>&1 || code=$?
    errors=$(sed -nE 's/.*(ERROR|RACECHECK) SUMMARY: ([0-9]+) .*/\2/p' "$log" | tail -n 1)
    # The first line that says what is wrong. A kernel that faults makes every later call fail: those are no finding.
    message=$(grep '^=========' "$log" |
      grep -vE 'COMPUTE-SANITIZER|Saved host|Host Frame|SUMMARY|^========= *$|hazards displayed|Target application' |
      head -n 1 | sed -E 's/^========= *//; s/0x[0-9a-f]+/ADDRESS/g; s/[",]//g' | cut -c1-100)
    if [ $code -eq 124 ] || [ $code -eq 137 ]; then errors="no end"; fi
    answers+=,${errors:-none}${message:+: $message}
  done
  echo "$(cut -d/ -f2 <<<"$program"),$(basename "$program"),$twin$answers"
}
export -f one

all() { # PROGRAM...
  printf '%s\n' "$@" | xargs -P "$jobs" -L 1 bash -c 'one "$0" "$1" "$2"' "$logs" "$limit"
}
if [ $# -gt 1 ]; then
  all "${@:2}"
  exit
fi
{
  echo "# $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1 | sed 's/, /, driver /')," \
    "compute-sanitizer $(compute-sanitizer --version | sed -n 's/.*[Vv]ersion \([0-9.]*\).*/\1/p' | head -n 1), $(date +%F)"
  echo "chapter,program,twin,memcheck,racecheck,synccheck,initcheck"
  all $(ls -d build/0*/{,*/}pitfalls/* build/0*/{,*/}fixed/* | grep -vE '\.(d|cu)$') | grep -v ',corrected,0,0,0,0$' | sort
} >emulator/tests/compare/sanitizer.csv
wc -l emulator/tests/compare/sanitizer.csv
