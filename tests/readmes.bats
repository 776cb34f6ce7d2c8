#!/usr/bin/env bats
# What the READMEs promise: terms are linked to the glossary, programs are short, outputs are what programs print.
# builds: lessons quoted

load helpers

@test "readmes: each term of the glossary is linked where a README first uses it" {
  run -0 python3 tests/check_glossary.py README.md [0-9][0-9]_*/{,*/}README.md 0[27]_*/[MW]*.md emulator/DEBUGGING.md
}

@test "readmes: the glossary's check finds a term that is not linked, and one linked twice; --link writes the link" {
  mkdir "$BATS_TEST_TMPDIR/tests"
  cp tests/check_glossary.py "$BATS_TEST_TMPDIR/tests/"
  printf '### bank\n\n### bank conflict\n' >"$BATS_TEST_TMPDIR/GLOSSARY.md"
  printf '# A bank\n`bank` bank conflicts, then a bank.\n' >"$BATS_TEST_TMPDIR/README.md"
  run -1 python3 "$BATS_TEST_TMPDIR/tests/check_glossary.py" "$BATS_TEST_TMPDIR/README.md"
  [[ $output == *"README.md:2: 'bank conflicts' is used here first: "*" --link README.md links it to GLOSSARY.md#bank-conflict"* ]]
  run -0 python3 "$BATS_TEST_TMPDIR/tests/check_glossary.py" --link "$BATS_TEST_TMPDIR/README.md"
  run cat "$BATS_TEST_TMPDIR/README.md"
  [ "${lines[1]}" = '`bank` [bank conflicts](GLOSSARY.md#bank-conflict), then a [bank](GLOSSARY.md#bank).' ]
  echo 'Another [bank](GLOSSARY.md#bank).' >>"$BATS_TEST_TMPDIR/README.md"
  run -1 python3 "$BATS_TEST_TMPDIR/tests/check_glossary.py" "$BATS_TEST_TMPDIR/README.md"
  [ "$output" = "README.md:3: GLOSSARY.md#bank is linked before: leave this link out" ]
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
             fenced = !fenced; start = FNR }' README.md [0-9][0-9]_*/{,*/}README.md 0[27]_*/[MW]*.md
  [ -z "$output" ]
}

@test "readmes: every command leads somewhere, and what prints at once prints what is shown" {
  # make check-readmes runs all of them.
  run -0 python3 -B tests/readme_commands.py
}

@test "readmes: a command that fails, another output, a dead link and an old exception are found" {
  local copy=$BATS_TEST_TMPDIR/copy
  mkdir -p "$copy/tests" "$copy/build" "$copy/02_tma_load"
  cp -r common Makefile "$copy/"
  find "$copy/common" -name '*.md' -delete
  cp tests/readme_commands.py "$copy/tests/"
  cp 02_tma_load/first_load.cu "$copy/02_tma_load/"
  cat >"$copy/README.md" <<'MARKDOWN'
# A heading
[gone](gone.md) [no heading](#another-heading) [right](#a-heading) `common/gone.c`
`make run-02 PROGRAM=gone`, `make frobnicate PROGRAM=first_load`, `common/exercises/take --nothing`
<!-- output of: common/exercises/take --help -->
```text
what it does not print
```
```text
from nowhere
```
MARKDOWN
  run -1 python3 -B "$copy/tests/readme_commands.py"
  [[ $output == *"README.md:2: the link to gone.md leads to no file"* ]]
  [[ $output == *"README.md:2: the link to #another-heading: README.md has no such heading"* ]]
  [[ $output != *"the link to #a-heading"* ]]
  [[ $output == *"README.md:2: there is no file common/gone.c"* ]]
  [[ $output == *"README.md:3: make run-02 PROGRAM=gone: there is no program gone"* ]]
  [[ $output == *"README.md:3: make frobnicate PROGRAM=first_load: make has no goal frobnicate"* ]]
  [[ $output == *"README.md:5: common/exercises/take --help does not print this line of the block: what it does not print"* ]]
  [[ $output == *"README.md:8: no <!-- output of: COMMAND --> says what prints this block"* ]]
  [[ $output == *"NOT_RUN has 'make bench' (needs a GPU), but no Markdown file has such a command"* ]]
}

@test "readmes: addresses of global memory are not compared, nor which line of a header's statement has its instruction" {
  run -0 python3 -B - <<'PYTHON'
import sys
sys.path.insert(0, "tests")
from readme_commands import first_difference
for address in ("0x7e1e09706100", "0x6fff12345600", "0x2aaab0001000", "0x4a0001000"):
    assert first_difference(["at 0x7e1e09706100 (byte 4)"], f"at {address} (byte 4)") is None, address
assert first_difference(["  at a.cu:5 (in b.cuh:43)"], "  at a.cu:5 (in b.cuh:41)") is None
assert first_difference(["  at a.cu:5 (in b.cuh:43)"], "  at a.cu:6 (in b.cuh:43)") is not None
assert first_difference(["it is 0x00000841"], "it is 0x00000861") == "it is 0x00000841"
PYTHON
}

@test "readmes: the ladder's first table has the speed of ladder.csv and the busy share of ncu.csv" {
  run -0 python3 - <<'PYTHON'
import csv, re
def column(name, heading):
    rows = csv.DictReader(line for line in open(f"07_pipelined_gemm/measured/{name}.csv") if line[0] != "#")
    return {row["rung"]: float(row[heading]) for row in rows}
speed, busy = column("ladder", "8192^3"), column("ncu", "busy %, 8192^3")
shown = re.findall(r"(?m)^\| \[(\w+)\]\(\w+\.cu\) \| .* \| (\d+) \| (\d+) \|", open("07_pipelined_gemm/README.md").read())
assert len(shown) == len(busy), shown
for rung, first, second in shown:
    assert abs(int(first) - speed[rung]) <= 0.5 and abs(int(second) - busy[rung]) <= 0.5, (rung, speed[rung], busy[rung])
PYTHON
}

@test "readmes: the first README gives the lowest of the drawn products, of promoted e4m3 and of attention" {
  local measured=07_pipelined_gemm/library/measured lowest
  lowest=$(awk -F , '/^[0-9]/ { theirs = 0
      for (i = split($4, programs, ";"); i > 0; i--) { split(programs[i], one, " ")
        if (one[1] ~ /^measured:/) ours = one[2]
        if (one[1] ~ /^cublas/ && (theirs == 0 || one[2] < theirs)) theirs = one[2] }
      printf "%.3f (%s x %s x %s)\n", theirs / ours, $1, $2, $3 }' $measured/shapes.csv | sort -n | sed -n 1p)
  [ "$lowest" = "0.849 (37 x 4000 x 4000)" ]
  grep -qF "| lowest $lowest |" README.md
  for ratio in $(awk -F , '/^e4m3 promoted/ { print $NF }' $measured/features.csv); do
    grep -q "^|.*e4m3.*[| ]$ratio " README.md
  done
  lowest=$(awk -F , '/^[0-9]/ { print $NF }' 07_pipelined_gemm/attention/measured/attention.csv | sort -n | sed -n 1p)
  grep -q "^|.*attention.*lowest $lowest (" README.md
}

@test "readmes: every lesson takes --full" {
  for source in [0-9][0-9]_*/*.cu; do
    if [[ $source == */bench_* || ! -x build/${source%.cu} ]]; then continue; fi
    echo "$source"
    # What is refused is the argument behind it.
    run -2 "build/${source%.cu}" --full --no-such-option
    [[ ${lines[0]} == *"'--no-such-option'"* ]]
  done
}

@test "readmes: a verdict or a heading has its sizes from the constants, not from the words" {
  run grep -rnE --include='*.cu' --include='*.cuh' --exclude-dir=pitfalls --exclude-dir=exercises \
    '(printf|program_end)\("[^"]*[0-9] ?x ?[0-9]' [0-9][0-9]_*
  [ -z "$output" ]
}

@test "readmes: a recording says how many lines it leaves out, and leaves out no others" {
  for full in $(find tests/recorded -name '*.full.txt'); do
    is_shortened "$full" "${full%.full.txt}.txt"
  done
  printf 'a\nb\nc\n' >"$BATS_TEST_TMPDIR/full"
  printf 'a\n... 1 more lines with --full\nc\n' >"$BATS_TEST_TMPDIR/short"
  is_shortened "$BATS_TEST_TMPDIR/full" "$BATS_TEST_TMPDIR/short"
  sed -i s/1/2/ "$BATS_TEST_TMPDIR/short"
  run -1 is_shortened "$BATS_TEST_TMPDIR/full" "$BATS_TEST_TMPDIR/short"
  sed -i '$d' "$BATS_TEST_TMPDIR/short"
  run -0 is_shortened "$BATS_TEST_TMPDIR/full" "$BATS_TEST_TMPDIR/short"
  sed -i '$d' "$BATS_TEST_TMPDIR/short"
  run -1 is_shortened "$BATS_TEST_TMPDIR/full" "$BATS_TEST_TMPDIR/short"
}

@test "readmes: the first README leads to the questions, and each row of them to a heading and a program" {
  grep -q '](QUESTIONS.md)' README.md
  # readme_commands.py checks that the headings and programs exist.
  run awk -F ' [|] ' '/^[|] / && !/^[|] (you see|question) / {
      if ($3 !~ /\]\([^)]*#[^)]+\)/) print "no heading: " $1
      if ($4 !~ /\]\([^)#]+[.]cuh?\)/) print "no program: " $1
    }' QUESTIONS.md
  [ "${#lines[@]}" -eq 4 ]
  [ "${lines[0]}" = "no program: | anything else" ]
  [ "${lines[1]}" = "no program: | Why does the speed of a GEMM depend on the data?" ]
  [ "${lines[2]}" = "no program: | What is this called in CuTe, libcu++, CuTe DSL or Triton?" ]
  [ "${lines[3]}" = "no program: | Does this run on an RTX 50 or on Blackwell? Is there multicast on RTX 50?" ]
  [ "$(grep -c '^| .*](' QUESTIONS.md)" -ge 35 ]
}

@test "readmes: COVERAGE.md has each instruction of the emulator, in a program that contains it, and links that lead somewhere" {
  local copy=$BATS_TEST_TMPDIR/copy file
  run -0 common/book/coverage.py --look
  [ -z "$output" ]
  mkdir "$copy"
  cp -r common [0-9][0-9]_* COVERAGE.md "$copy/"
  mkdir -p "$copy/emulator/ptx" "$copy/emulator/tests/recorded" "$copy/tests/recorded"
  for file in emulator/ptx/opcodes.def {,emulator/}tests/recorded/manifest.csv; do cp $file "$copy/$file"; done
  ln -s "$PWD/build" "$copy/build"
  sed -i 's,02_tma_load/cp_async_ring ;,02_tma_load/first_load ;,; /^setmaxnreg/d; s/ left_without_drop/ left/
    s/README.md#at-the-edge ; 03/README.md#at-the-rim ; 03/; s/; wgmma[_]cases/; none/' "$copy/common/book/forms.txt"
  run -1 "$copy/common/book/coverage.py" --look
  [[ $output == *"im2col_no_offs: there is no heading 03_tma_store/README.md#at-the-rim"* ]]
  [[ $output == *"cp.async.mbarrier.arrive.noinc: 02_tma_load/first_load does not contain it"* ]]
  [[ $output == *"setmaxnreg is in opcodes.def, but forms.txt has no form of it"* ]]
  [[ $output == *"mbarrier.arrive_drop: there is no pitfall left"* ]]
  [[ $output == *"no GPU has printed emulator/tests/recorded/none"* ]]
  [[ $output == *"COVERAGE.md is not up to date: type common/book/coverage.py" ]]
}

@test "readmes: what comes after Hopper is told in at most 900 words" {
  [ "$(wc -w <AFTER_HOPPER.md)" -le 900 ]
  grep -q '](AFTER_HOPPER.md' README.md
  grep -q '](COVERAGE.md' README.md
}

# What the tables of SOURCES.md lack: a program, or the rule that a pitfall's header names.
unshown_claims() { # FILE
  local row programs program rule
  while read -r row; do
    programs=$(grep -oE '\]\([^)#]*\.cu\)' <<<"$row" | sed 's/^](//; s/)$//')
    [ -n "$programs" ] || echo "no program: $row"
    for program in $programs; do
      [ -e "$program" ] || echo "no such program: $program"
      rule=$(sed -n 's,^//   report: ,,p' "$program" 2>/dev/null)
      [[ -z $rule || $row == *"\`$rule\`"* ]] || echo "$program breaks $rule: $row"
    done
  done < <(awk -F '[|]' 'NF == 6 && /^[|] [A-E]/' "$1")
}

@test "readmes: each claim of SOURCES.md has a program, and names the rule that a pitfall breaks" {
  grep -q '](SOURCES.md)' README.md
  run unshown_claims SOURCES.md
  [ "$output" = "" ]
  [ "$(awk -F '[|]' 'NF == 6 && /^[|] [A-E]/' SOURCES.md | wc -l)" -ge 33 ]
  sed 's/`innermost-coordinate`//; s,02_tma_load/first_load.cu,02_tma_load/last_load.cu,
    s,\[encode_by_hand\](.*),nowhere,' SOURCES.md >"$BATS_TEST_TMPDIR/changed"
  run unshown_claims "$BATS_TEST_TMPDIR/changed"
  [ "${#lines[@]}" -eq 3 ]
}

bugs_in() { awk -v part="## $1" '/^## / { inside = $0 == part } inside && /^### /' emulator/FOUND.md | wc -l; }

@test "readmes: the bugs that the first README counts are the headings of FOUND.md, in three groups" {
  local seen lucky strict
  seen=$(bugs_in "Wrong results or a hang, seen")
  lucky=$(bugs_in "Wrong by the PTX ISA, right by luck so far")
  strict=$(bugs_in Strict)
  grep -q "^\*\*$((seen + lucky + strict)) bugs in public code\*\* so far: $seen gave .*, $lucky break .*, and $strict are strict" README.md
  # What was seen stands in each entry of the first group, and each answer of the authors is a link.
  [ "$(grep -cE '(^|[.] )Seen: .' emulator/FOUND.md)" -eq "$seen" ]
  ! grep -E '^(Confirmed|Known): ' emulator/FOUND.md | grep -v 'https://' || false
  grep -q "of the $(grep -c '^H200 (' emulator/FOUND.md) that an H200 ran, $(grep -cE '^H200 \([^)]*\): wrong' emulator/FOUND.md) gave" README.md
  grep -q "confirmed or fixed $(grep -c '^Confirmed: ' emulator/FOUND.md) of them" README.md
}

@test "readmes: COMPARED.md is what table.py writes" {
  python3 emulator/tests/compare/table.py "$BATS_TEST_TMPDIR/compared.md"
  diff "$BATS_TEST_TMPDIR/compared.md" emulator/COMPARED.md || { echo "type emulator/tests/compare/table.py"; false; }
  # The first README has its counts.
  count=$(grep -o "^Of [0-9]* pitfalls, .* together [0-9]*" emulator/COMPARED.md)
  grep -qF "$count" <(tr '\n' ' ' <README.md)
}

@test "readmes: CITATION.cff has what its format demands, with README's title and the licence" {
  for key in cff-version message title authors; do grep -q "^$key:" CITATION.cff; done
  [ "$(sed -n 's/^title: //p' CITATION.cff)" = "$(sed -n '1s/^# //p' README.md)" ]
  [ "$(sed -n 's/^license: //p' CITATION.cff) License" = "$(head -n 1 LICENSE)" ]
}
