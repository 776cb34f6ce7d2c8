#!/usr/bin/env bats
# What the READMEs promise: terms are linked to the glossary, programs are short, outputs are what programs print.

load helpers

setup() {
  begin_test
}

@test "readmes: each term of the glossary is linked where a README first uses it" {
  run python3 tests/check_glossary.py README.md [0-9][0-9]_*/README.md
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "readmes: the glossary's check finds a term that is not linked, and --link writes the link" {
  mkdir "$BATS_TEST_TMPDIR/tests"
  cp tests/check_glossary.py "$BATS_TEST_TMPDIR/tests/"
  printf '### bank\n\n### bank conflict\n' >"$BATS_TEST_TMPDIR/GLOSSARY.md"
  printf '# A bank\n`bank` bank conflicts, then a bank.\n' >"$BATS_TEST_TMPDIR/README.md"
  run python3 "$BATS_TEST_TMPDIR/tests/check_glossary.py" "$BATS_TEST_TMPDIR/README.md"
  [ "$status" -eq 1 ]
  [ "${lines[0]}" = "README.md:2: 'bank conflicts' is used here first: link it to GLOSSARY.md#bank-conflict" ] ||
    [ "${lines[1]}" = "README.md:2: 'bank conflicts' is used here first: link it to GLOSSARY.md#bank-conflict" ]
  run python3 "$BATS_TEST_TMPDIR/tests/check_glossary.py" --link "$BATS_TEST_TMPDIR/README.md"
  [ "$status" -eq 0 ]
  run cat "$BATS_TEST_TMPDIR/README.md"
  [ "${lines[1]}" = '`bank` [bank conflicts](GLOSSARY.md#bank-conflict), then a [bank](GLOSSARY.md#bank).' ]
}

@test "readmes: the smallest program of each chapter has at most 60 lines" {
  for chapter in [0-9][0-9]_*; do
    echo "$chapter"
    [ "$(wc -l <"$(echo "$chapter"/first_*.cu)")" -le 60 ]
  done
}

@test "readmes: no block of output or code is longer than 25 lines" {
  run awk 'FNR == 1 { fenced = 0 }
    /^```/ { if (fenced && FNR - start - 1 > 25) print FILENAME ":" start ": " FNR - start - 1 " lines"
             fenced = !fenced; start = FNR }' README.md [0-9][0-9]_*/README.md
  echo "$output"
  [ -z "$output" ]
}

@test "readmes: the verdicts in the first README are those of the chapters' programs" {
  mains=(tiledcopy_baseline tma_load tma_store store_reduce multicast swizzle_3d pipelined_gemm)
  i=0
  for chapter in [0-9][0-9]_*; do
    recorded=tests/recorded/$chapter/${mains[i]}.txt
    i=$((i + 1))
    [ "$(tail -n 1 "$recorded")" = "$(sed -n "${i}p" tests/recorded/make/run.txt)" ]
  done
}

@test "readmes: COMPARED.md is what table.py writes" {
  python3 tests/compare/table.py "$BATS_TEST_TMPDIR/compared.md"
  diff "$BATS_TEST_TMPDIR/compared.md" tests/emulator/COMPARED.md
}
