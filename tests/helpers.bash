# helpers.bash: what every test file of the lessons loads. What tests of the emulator need, too, is there.
source "${BASH_SOURCE[0]%/*}/../emulator/tests/helpers.bash"

# The reader's own exercises stay as they are: a test has a folder for its own.
use_exercises_of_its_own() {
  export EXERCISES=$BATS_TEST_TMPDIR/exercises
  unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES MFLAGS EXERCISE
}

exercise() { # COMMAND CHAPTER...
  run -0 common/exercises/exercise "$@"
}

judged_ptx() { # NAME, with the PTX on standard input
  cat - >"$BATS_TEST_TMPDIR/$1.ptx"
  EXERCISE=$1 PTX=$BATS_TEST_TMPDIR/$1.ptx exercise judge-ptx 0*_*
}

# Everything but the first line, which names the device, is equal to what was recorded on an H200. NAME.full.txt
# is what it prints with --full. Then one run is enough: NAME.txt must be that without what is left out.
prints_what_was_recorded() { # NAME, a program of $chapter
  local recorded=tests/recorded/$chapter/$1.txt full=
  if [ -e "${recorded%.txt}.full.txt" ]; then
    full=--full
    is_shortened "${recorded%.txt}.full.txt" "$recorded" || return 1
    recorded=${recorded%.txt}.full.txt
  fi
  local printed=$BATS_TEST_TMPDIR/${1##*/}
  common/make/run-program "build/$chapter/$1" $full >"$printed" || return 1
  head -n 1 "$printed" | grep -q '^device: ' || return 1
  diff <(tail -n +2 "$printed") "$recorded"
}

# What lessons lack, a line each with what to type (CONTRIBUTING.md). What only measures is no lesson.
lacking() { # SOURCE...
  local source name recorded lesson
  for source; do
    name=$(basename "$source" .cu) recorded=tests/recorded/${source%.cu}.txt
    [[ -e $source && $name != bench_* ]] || continue
    grep -sqw "$name" "${source%/*}"/*.md || echo "$source: no README of its folder names it"
    if [ ! -s "$recorded" ]; then
      echo "$source: there is no $recorded: type common/make/record $recorded"
    elif [ "$(wc -l <"$recorded")" -gt 59 ]; then
      echo "$source: prints more than 60 lines without --full"
    fi
    lesson=${source%%_*}_$name
    if grep -Eq '<<<|LaunchKernel|include .gemm_program' "$source" && ! grep -q "^$lesson," emulator/record/counters.csv; then
      echo "$source: no row in emulator/record/counters.csv: on an H200 with ncu, type emulator/clock/measure.sh counters" \
        "$lesson; without one, add the row $lesson,KERNEL,LAUNCHES,,,,,,,,, for each kernel"
    fi
  done
}

# All programs of $chapter of which something was recorded, but for these; and no program of it lacks anything.
print_what_was_recorded() { # NAME...
  local recorded name wrong
  wrong=$(lacking "$chapter"/*.cu "$chapter"/{library,attention}/*.cu)
  for recorded in $(find "tests/recorded/$chapter" -name "*.txt" | sort); do
    name=${recorded#"tests/recorded/$chapter/"}
    name=${name%.txt}
    if [[ $name == *.full || $name == *.report || " $* " == *" $name "* ]]; then continue; fi
    prints_what_was_recorded "$name" || wrong+=$'\n'"not what was recorded: $name"
  done
  [ -z "$wrong" ] || { echo "$wrong"; return 1; }
}

# Is SHORT what FULL says, but for the lines that it says are left out?
is_shortened() { # FULL SHORT
  awk 'NR == FNR { full[++lines] = $0; next }
    /^\.\.\. [0-9]+ more lines with --full$/ { at += $2; next }
    $0 != full[++at] { print FILENAME ":" FNR ": " $0 "\n  with --full: " full[at]; wrong = 1; exit }
    END { if (!wrong && at != lines) { print FILENAME " ends before line " at + 1 " of " lines; wrong = 1 }
      exit wrong }' "$1" "$2"
}

# A product of chapter 07: right and silent, even by the strict rules.
exact() { # PROGRAM ARGUMENTS...
  EMULATOR_CHECK=strict run -0 common/make/run-program build/07_pipelined_gemm/"$@"
  [[ $output == *"PASS $1: one product of bf16 matrices, exactly"* ]]
}

# ---- Pitfalls ----

# Puts the rule that a run reports first, or "none", into `first`. One host thread: blocks that run at the
# same time would report in any order. There are some 1,700 runs in make check-all, so none starts a process too many.
first_report() { # PROGRAM SCHEDULE
  local text
  text=$(EMULATOR_SCHEDULE=$2 EMULATOR_THREADS=1 timeout -s KILL 600 "$1" 2>&1 >/dev/null)
  first=none
  if [[ $'\n'$text =~ $'\n'"emulator: "([a-z0-9-]+)": " ]]; then first=${BASH_REMATCH[1]}; fi
}

# Prints what is wrong with one pitfall; nothing when all is as it should be.
try_pitfall() { # SOURCE
  local name rule schedule first
  name=$(basename "$1" .cu)
  rule=$(pitfall_field "$1" report)
  export EMULATOR_CHECK
  EMULATOR_CHECK=$(check_for "$1")
  for schedule in late $(seq -f random:%g "${PITFALL_ORDERS:-2}"); do
    first_report "build/tests/joined/${1%/pitfalls/*}/pitfalls/$name" "$schedule"
    [ "$first" = "$rule" ] || echo "$name, $schedule: $first first, but the header says $rule"
  done
}

# FUNCTION prints nothing for any of them. All on the emulator: what the H200 does with pitfalls, DEVICE=gpu make
# pitfalls compares.
each_pitfall() { # FUNCTION SOURCE...
  [ $# -gt 1 ]
  source common/make/pitfall-fields
  export -f first_report pitfall_field check_for "$1"
  export LD_LIBRARY_PATH=$PWD/build/emulator
  run -0 xargs -P 2 -I SOURCE bash -c "$1 SOURCE" < <(printf '%s\n' "${@:2}")
  [ -z "$output" ]
}

# Every pitfall of $chapter is reported first by the rule that its header names, whatever the order in
# which copies land.
try_pitfalls() {
  each_pitfall try_pitfall $(find "$chapter" -path '*/pitfalls/*.cu' | sort)
}

# Each program prints its usage for -h, exit code 0; where it cannot be written, exit code 1; and for an unknown option, exit
# code 2.
print_their_usage() { # PROGRAM...
  local program
  [ $# -gt 0 ]
  for program; do
    echo "$program"
    run -0 "$program" -h
    [[ $output == "usage: "* ]]
    run -1 bash -c "$program -h 2>&1 >/dev/full"
    [[ $output == "${program##*/}: "* ]]
    run -2 "$program" --no-such-option
    [[ $output == *"usage: ${program##*/}"* ]]
  done
}
