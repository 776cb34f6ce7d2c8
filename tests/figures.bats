#!/usr/bin/env bats
# common/book/figures.py: tables from CSV and recorded outputs go into the READMEs, and nothing else
# changes. It runs on a small tree of its own, because it finds the root from where it lies.

load helpers

setup() {
  begin_test
  root=$BATS_TEST_TMPDIR/root
  mkdir -p "$root/common/book" "$root/01_one" "$root/build/01_one" "$root/tests/recorded/01_one"
  cp common/book/figures.py common/book/tables.py common/book/picture.py "$root/common/book/"
  printf '# a GPU, driver 1, 2026-11-21\nsize,way,of all\n1 MiB,old,1.0\n1 MiB,new,2.0\n2 MiB,new,3.0\n' \
    >"$root/build/01_one/speed.csv"
  printf 'hello\nPASS one: said hello\n' >"$root/tests/recorded/01_one/one.txt"
}

figures() { python3 "$root/common/book/figures.py" "$root/01_one"; }

@test "a table, a turned table and an output; a second run changes nothing" {
  cat >"$root/01_one/README.md" <<'README'
before
<!-- begin: speed -->
old
<!-- end: speed -->
<!-- begin: one.txt -->
<!-- end: one.txt -->
after
README
  printf '<!-- begin: 01_one/speed rows=way columns=size cell=of all -->\n<!-- end: 01_one/speed -->\n' \
    >"$root/README.md"
  figures
  cat "$root/01_one/README.md" "$root/README.md"
  grep -q '^| 1 MiB | old | 1.0 |$' "$root/01_one/README.md"
  grep -q '^a GPU, driver 1, 2026-11-21$' "$root/01_one/README.md"
  grep -q '^PASS one: said hello$' "$root/01_one/README.md"
  ! grep -q '^old$' "$root/01_one/README.md" || false
  [ "$(head -n 1 "$root/01_one/README.md")" = before ]
  [ "$(tail -n 1 "$root/01_one/README.md")" = after ]
  grep -q '^| way | 1 MiB | 2 MiB |$' "$root/README.md"
  grep -q '^| new | 2.0 | 3.0 |$' "$root/README.md"
  cp "$root/01_one/README.md" "$root/once.md"
  figures
  cmp "$root/01_one/README.md" "$root/once.md"
}

@test "what was not measured stays as it is, and is named" {
  printf '<!-- begin: other -->\nkept\n<!-- end: other -->\n' >"$root/01_one/README.md"
  run -0 figures
  [[ $output == *"01_one/README.md: other: nothing recorded, left as it is"* ]]
  grep -q '^kept$' "$root/01_one/README.md"
}

@test "a column that the CSV has not: its name and those there are, an error" {
  printf '<!-- begin: speed rows=way columns=size cell=time -->\n<!-- end: speed -->\n' \
    >"$root/01_one/README.md"
  run -1 figures
  [[ $output == *"speed: no column 'time' in the CSV, which has: size, way, of all"* ]]
}

@test "no chapter: the usage, exit 2" {
  run -2 python3 "$root/common/book/figures.py"
  [ "$output" = "usage: figures.py CHAPTER..." ]
}

@test "what make bench left in build/ is kept in measured/, also without build/" {
  printf '<!-- begin: speed -->\n<!-- end: speed -->\n' >"$root/01_one/README.md"
  figures
  cmp "$root/build/01_one/speed.csv" "$root/01_one/measured/speed.csv"
  cp "$root/01_one/README.md" "$root/once.md"
  rm -r "$root/build"
  figures
  cmp "$root/01_one/README.md" "$root/once.md"
}

@test "a CSV that does not say where and when is not taken" {
  printf 'size,way\n1 MiB,old\n' >"$root/build/01_one/speed.csv"
  printf '<!-- begin: speed -->\nkept\n<!-- end: speed -->\n' >"$root/01_one/README.md"
  run -0 figures
  [[ $output == *"build/01_one/speed.csv: says no GPU, driver and date"* ]]
  grep -q '^kept$' "$root/01_one/README.md"
  [ ! -e "$root/01_one/measured" ]
}

@test "the table of pitfalls comes from their headers" {
  mkdir "$root/01_one/pitfalls"
  printf '// pitfall %s: %s\n//   H200: %s\n//   report: %s\n//\n// %s\n#include <stdio.h>\n' \
    a "no wait" "not run yet" read-without-wait "More." >"$root/01_one/pitfalls/a.cu"
  printf '// pitfall %s: %s\n//   H200: %s\n//   report: %s\n//\n// %s\n#include <stdio.h>\n' \
    b "this | that" cudaErrorLaunchFailure none "It has not been
// run yet." >"$root/01_one/pitfalls/b.cu"
  printf '// pitfall %s: %s\n//   H200: %s\n//   report: %s\n//\n// %s\n#include <stdio.h>\n' \
    c "another subject" "right results" lane-race "More." >"$root/01_one/pitfalls/c.cu"
  printf 'level: easy\n' | tee "$root/01_one/pitfalls/a.fix" >"$root/01_one/pitfalls/b.fix"
  printf 'level: easy\naside: not about TMA\n' >"$root/01_one/pitfalls/c.fix"
  printf '<!-- begin: %s -->\n<!-- end: %s -->\n' pitfalls pitfalls asides asides >"$root/01_one/README.md"
  figures
  cat "$root/01_one/README.md"
  grep -qF '| [a](pitfalls/a.cu) | no wait | not measured | `read-without-wait` |' \
    "$root/01_one/README.md"
  sed -n '/begin: asides/,$p' "$root/01_one/README.md" | grep -qF '| [c](pitfalls/c.cu) | another subject |'
  ! sed '/begin: asides/,$d' "$root/01_one/README.md" | grep -qF 'pitfalls/c.cu' || false
  grep -qF '| [b](pitfalls/b.cu) | this \| that | `cudaErrorLaunchFailure`' "$root/01_one/README.md"
  grep -qF '| not reported |' "$root/01_one/README.md"
  printf '<!-- begin: pitfalls grouped -->\n<!-- end: pitfalls -->\n' >"$root/01_one/README.md"
  figures
  cat "$root/01_one/README.md"
  [ "$(grep -n ':$' "$root/01_one/README.md" | cut -d: -f2 | paste -sd,)" = "It ends with an error,Not measured" ]
  [ "$(grep -c '^| \[' "$root/01_one/README.md")" -eq 2 ]
}

@test "in a fresh clone, without build/, the READMEs come out as they are" {
  clone=$BATS_TEST_TMPDIR/clone
  mkdir -p "$clone/common/book" "$clone/emulator" "$clone/tests"
  cp -r README.md DECIDE.md [0-9][0-9]_* "$clone/"
  cp common/book/{figures.py,tables.py,picture.py,compared.csv} "$clone/common/book/"
  cp -r tests/recorded "$clone/tests/"
  cp emulator/FOUND.md "$clone/emulator/"
  run -0 python3 "$clone/common/book/figures.py" "$clone"/[0-9][0-9]_*
  [[ $output != *"left as it is"* ]]
  for readme in README.md DECIDE.md [0-9][0-9]_*/{,*/}*.md; do
    diff "$readme" "$clone/$readme" || { echo "$readme: type make figures"; false; }
  done
}

@test "some lines of an output, and dots where others are left out" {
  printf '\none\ntwo\n\nthree\nfour\nfive\n' >"$root/tests/recorded/01_one/many.txt"
  printf '<!-- begin: many.txt lines=2,5-6 -->\n<!-- end: many.txt -->\n' >"$root/01_one/README.md"
  figures
  printf '<!-- begin: many.txt lines=2,5-6 -->\n```text\none\n...\nthree\nfour\n...\n```\n<!-- end: many.txt -->\n' >"$root/wanted.md"
  diff "$root/01_one/README.md" "$root/wanted.md"
  for choice in 0-2 3-2 5,2 2-8 x; do
    printf '<!-- begin: many.txt lines=%s -->\n<!-- end: many.txt -->\n' "$choice" >"$root/01_one/README.md"
    run -1 figures
    [[ $output == *"many.txt: lines=$choice: "*" is not a range of its 7 lines"* ]]
  done
}
