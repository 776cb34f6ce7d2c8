#!/usr/bin/env bats
# emulate --findings: the list as JSON and as SARIF (emulator/FINDINGS.md).
# builds: tests/take/examples/joined tests/joined/04_%

load helpers

setup() {
  begin_test
  emulate=$PWD/emulator/emulate
  list=$BATS_TEST_TMPDIR/list.json
  sarif=$BATS_TEST_TMPDIR/list.sarif
}

# Prints the value of an expression of Python in which d is what FILE holds, and f its first finding.
value() { # FILE EXPRESSION
  python3 -c 'import json, sys
d = json.load(open(sys.argv[1], encoding="utf-8"))
f = d.get("findings", [None])[0] if d.get("findings") else None
print(eval(sys.argv[2]))' "$1" "$2"
}

# Both lists of a pitfall; what it prints and its exit code stay as they are.
lists_of() { # PITFALL
  local program=build/$1 code=0 own=0 file
  EMULATOR_THREADS=1 "$emulate" "$program" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || code=$?
  for file in "$list" "$sarif"; do
    EMULATOR_THREADS=1 "$emulate" --findings "$file" "$program" >"$BATS_TEST_TMPDIR/own.out" 2>"$BATS_TEST_TMPDIR/own.err" || own=$?
    [ "$own" -eq "$code" ] || return 1
    diff "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/own.out" || return 1
    diff "$BATS_TEST_TMPDIR/err" "$BATS_TEST_TMPDIR/own.err" || return 1
  done
  check_sarif
  each_field_is_documented
}

# Those of places, too.
each_field_is_documented() {
  python3 - "$list" <<'PYTHON'
import json, sys
names = set()
json.load(open(sys.argv[1], encoding="utf-8"), object_hook=names.update)
with open("emulator/FINDINGS.md", encoding="utf-8") as file:
    documented = file.read()
missing = [name for name in sorted(names) if f"`{name}`" not in documented and f'"{name}": ' not in documented]
for name in missing:
    print(f"`{name}` is not in emulator/FINDINGS.md")
sys.exit(bool(missing))
PYTHON
}

# What the schema of SARIF 2.1.0 and GitHub require, by hand (its validators fetch the schema, of 100 KB).
check_sarif() {
  python3 - "$sarif" <<'PYTHON'
import json, sys
log = json.load(open(sys.argv[1], encoding="utf-8"))
def need(condition, what):
    if not condition:
        sys.exit(f"not SARIF: {what}")
def only(thing, names):
    need(set(thing) <= set(names.split()), f"{sorted(thing)} has more than {names}")
def physical(place):
    only(place["physicalLocation"], "artifactLocation region")
    uri = place["physicalLocation"]["artifactLocation"]["uri"]
    need(isinstance(uri, str) and uri and " " not in uri, uri)
    need(not uri.startswith("/"), uri)
    line = place["physicalLocation"].get("region", {"startLine": 1})["startLine"]
    need(isinstance(line, int) and line >= 1, line)
only(log, "$schema version runs")
need(log["version"] == "2.1.0", "version")
need(len(log["runs"]) == 1, "one run")
run = log["runs"][0]
only(run, "tool results")
driver = run["tool"]["driver"]
only(driver, "name version rules")
need(driver["name"] == "emulate", "driver")
names = [rule["id"] for rule in driver["rules"]]
need(len(names) == len(set(names)), "rules are unique")
for rule in driver["rules"]:
    only(rule, "id shortDescription fullDescription help defaultConfiguration properties")
    for text in ("shortDescription", "fullDescription", "help"):
        need(rule[text]["text"], text)
    need(rule["defaultConfiguration"]["level"] in ("warning", "error"), "level")
for result in run["results"]:
    only(result, "ruleId ruleIndex level message locations occurrenceCount relatedLocations properties")
    need(names[result["ruleIndex"]] == result["ruleId"], "ruleIndex")
    need(result["level"] in ("warning", "error"), "level")
    need(result["message"]["text"], "message")
    need(len(result["locations"]) == 1, "one location")
    need(isinstance(result["occurrenceCount"], int) and result["occurrenceCount"] >= 1, "occurrenceCount")
    for place in result["locations"]:
        only(place, "physicalLocation logicalLocations properties")
        physical(place)
    for place in result.get("relatedLocations", []):
        only(place, "id physicalLocation message properties")
        physical(place)
PYTHON
}

line_of() { # FILE TEXT
  grep -nF -m 1 -- "$2" "$1" | cut -d: -f1
}

site='f["rule"], f["grade"], f["site"]["file"], f["site"]["line"], f["other"] and (f["other"]["file"], f["other"]["line"])'
shown='[(r["ruleId"], r["level"], *[(p["physicalLocation"]["artifactLocation"]["uri"], p["physicalLocation"]["region"]["startLine"]) for p in r["locations"] + r.get("relatedLocations", [])]) for r in d["runs"][0]["results"]]'

# Compares both lists of a pitfall with what the source says.
shows() { # CHAPTER/pitfalls/NAME GRADE LEVEL TEXT_AT_THE_SITE [TEXT_AT_THE_OTHER]
  local file=$1.cu rule line other=None related=''
  source common/make/pitfall-fields
  rule=$(pitfall_field "$file" report)
  line=$(line_of "$file" "$4")
  if [ -n "${5:-}" ]; then
    other="('$file', $(line_of "$file" "$5"))"
    related=", $other"
  fi
  lists_of "$1" || return 1
  [ "$(value "$list" "$site")" = "('$rule', '$2', '$file', $line, $other)" ] || { value "$list" "$site"; return 1; }
  [ "$(value "$sarif" "$shown")" = "[('$rule', '$3', ('$file', $line)$related)]" ] || { value "$sarif" "$shown"; return 1; }
}

@test "five pitfalls as JSON and SARIF: rule, grade, place and other place; nothing else changes" {
  shows 03_tma_store/pitfalls/missing_proxy_fence error error 'tma_store_2d(&map, tile' 'tile[i] = '
  [ "$(value "$list" 'f["kernel"], f["block"], f["threads"], f["memory"], f["address"], f["times"]')" = \
    "('fill', [0, 0, 0], [0], 'shared', '0x400', 128)" ]
  [ "$(value "$list" 'f["site"]["inner_file"], f["heading"], f["program"]')" = \
    "('03_tma_store/tma_store.cuh', 'No proxy fence before the copy engine', 'build/03_tma_store/pitfalls/missing_proxy_fence')" ]
  [ "$(value "$list" 'f["message"].startswith("copies from shared memory at offset 0x400 through")')" = True ]
  shows 01_tiledcopy_baseline/pitfalls/missing_syncthreads error error 'copy_tile_scalar(tile' 'destination[start + '
  shows 02_tma_load/pitfalls/arrival_count_too_high hang error 'mbarrier_wait_parity(&barrier, 0)'
  shows 02_tma_load/pitfalls/misaligned_barrier fault error 'mbarrier_init(barrier, 1)'
  shows 04_store_reduce/pitfalls/read_only_load_of_sums error error 'result[element] = ' 'sums[element] = sum;'
}

@test "SARIF keeps every field: what has no place of its own there, a new one too, is in properties" {
  lists_of 03_tma_store/pitfalls/missing_proxy_fence
  [ "$(value "$sarif" 'd["runs"][0]["results"][0]["properties"]["program"]')" = build/03_tma_store/pitfalls/missing_proxy_fence ]
  sed -i 's/"times": /"a_new_field": [1, 2], &/; s/{"ptx_line": /{"a_new_name": "x", "ptx_line": /g' "$list"
  run -1 each_field_is_documented
  [ "$output" = '`a_new_field` is not in emulator/FINDINGS.md'$'\n''`a_new_name` is not in emulator/FINDINGS.md' ]
  python3 emulator/record/sarif.py "$list" >"$sarif"
  check_sarif
  local result='d["runs"][0]["results"][0]'
  [ "$(value "$sarif" "$result['properties']['a_new_field']")" = "[1, 2]" ]
  [ "$(value "$sarif" "[(p['properties']['a_new_name'], p['properties']['ptx_line'] > 0, 'ptx' in p['properties']) for p in \
    $result['locations'] + $result['relatedLocations']]")" = "[('x', True, True), ('x', True, True)]" ]
}

@test "a finding of the host's calls has no place; in SARIF it is at the program" {
  lists_of 01_tiledcopy_baseline/pitfalls/host_buffer_reused
  [ "$(value "$list" 'f["rule"], f["site"], f["other"], "kernel" in f')" = "('host-touches-copy', None, None, False)" ]
  [ "$(value "$sarif" 'd["runs"][0]["results"][0]["locations"]')" = \
    "[{'physicalLocation': {'artifactLocation': {'uri': 'build/01_tiledcopy_baseline/pitfalls/host_buffer_reused'}}}]" ]
}

@test "from another folder paths are absolute; a correct program's list is empty, and replaces an older one" {
  program=$PWD/build/03_tma_store/pitfalls/missing_proxy_fence source=$PWD/03_tma_store/pitfalls/missing_proxy_fence.cu
  correct=$PWD/build/02_tma_load/tma_load
  cd "$BATS_TEST_TMPDIR"
  run -3 "$emulate" --findings=list.json "$program"
  [ "$(value list.json 'f["site"]["file"]')" = "$source" ]
  run -3 "$emulate" --findings list.sarif "$program"
  check_sarif
  [ "$(value list.sarif 'd["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]')" = "file://$source" ]
  for file in list.json list.sarif; do
    run -0 --separate-stderr "$emulate" --findings $file "$correct"
    [ "$stderr" = "" ]
  done
  [ "$(value list.json "d['version'], d['findings'], len(d['runs'])")" = "(1, [], 1)" ]
  [ "$(value list.sarif 'd["runs"][0]["results"]')" = "[]" ]
  run bash -c "'$emulate' --findings /dev/stderr '$correct' 2>&1 >/dev/null"
  [[ $output == '{"version": 1, "findings": [
], "runs": [
{"order": "late", '*'}
]}' ]]
}

@test "several programs add to one list; a page may be written, too" {
  script "$BATS_TEST_TMPDIR/both" '"$1"' '"$1"' 'cd / && "$2"'
  run -1 "$emulate" --findings "$list" "$BATS_TEST_TMPDIR/both" "$PWD/build/03_tma_store/pitfalls/missing_proxy_fence" "$PWD/build/02_tma_load/pitfalls/misaligned_barrier"
  [ "$(value "$list" '[f["rule"] for f in d["findings"]]')" = "['missing-proxy-fence', 'missing-proxy-fence', 'misaligned-address']" ]
  run -3 "$emulate" --findings "$list" --page "$BATS_TEST_TMPDIR/page.html" build/03_tma_store/pitfalls/missing_proxy_fence
  [ "$(value "$list" 'len(d["findings"])')" = 1 ]
  [ -s "$BATS_TEST_TMPDIR/page.html" ]
}

@test "a program that a signal ends: what it did until then is in the list" {
  script "$BATS_TEST_TMPDIR/killed" '"$1"' 'kill -KILL $$'
  run -137 --separate-stderr "$emulate" --findings "$list" "$BATS_TEST_TMPDIR/killed" build/03_tma_store/pitfalls/missing_proxy_fence
  [[ $stderr == *"emulate: signal 9 (SIGKILL) ended the program" ]]
  [ "$(value "$list" 'f["rule"]')" = missing-proxy-fence ]
}

@test "bad paths and options that do not go together: a message, exit code 2, nothing written" {
  program=build/02_tma_load/tma_load
  emulate_refuses "--findings needs a value; see emulate --help" --findings
  emulate_refuses "--findings is '', but must be the name of a file to write" --findings "" $program
  emulate_refuses "--findings is given twice: leave one out" --findings a --findings b $program
  emulate_refuses "$BATS_TEST_TMPDIR/none/list.json cannot be written: No such file or directory" --findings "$BATS_TEST_TMPDIR/none/list.json" $program
  echo text >"$BATS_TEST_TMPDIR/text"
  emulate_refuses "--findings is '$BATS_TEST_TMPDIR/text', but that file exists and was not written by --findings: remove it or name another one" --findings "$BATS_TEST_TMPDIR/text" $program
  emulate_refuses "--findings is '$BATS_TEST_TMPDIR/text', but that file is part of what is run: name another one" --findings "$BATS_TEST_TMPDIR/text" $program "$BATS_TEST_TMPDIR/text"
  [ "$(cat "$BATS_TEST_TMPDIR/text")" = text ]
  emulate_refuses "--page, --trace, --record and --findings need a file each, but two of them write $list" --findings "$list" --page "$list" $program
  emulate_refuses "--findings is for one order: leave it out here, and add it when you replay the saved schedule" --explore --findings "$list" $program
  EMULATOR_FINDINGS=x emulate_refuses "--findings and EMULATOR_FINDINGS are both given: leave one out" --findings "$list" $program
  run -1 "$emulate" --findings "$list" /bin/true
  [ "$output" = "emulate: $list is not written: no program that uses CUDA was run" ]
  [ ! -e "$list" ]
}

@test "EMULATOR_FINDINGS: a file without emulate, added to by the next program; bad ones are refused" {
  export EMULATOR_FINDINGS=$list LD_LIBRARY_PATH=$PWD/build/emulator
  for times in 1 2; do
    run -3 build/03_tma_store/pitfalls/missing_proxy_fence
    [ "$(value "$list" '[f["times"] for f in d["findings"]]')" = "[$(seq -s ', ' $times | sed 's/[0-9]/128/g')]" ]
  done
  echo text >"$BATS_TEST_TMPDIR/text"
  EMULATOR_FINDINGS=$BATS_TEST_TMPDIR/text run -2 build/02_tma_load/tma_load
  [ "$output" = "emulator: EMULATOR_FINDINGS is '$BATS_TEST_TMPDIR/text', but that file exists and holds something else: remove it or name another file" ]
  EMULATOR_FINDINGS=/dev/null run -2 build/02_tma_load/tma_load
  [ "$output" = "emulator: EMULATOR_FINDINGS is '/dev/null', but must be the name of a file, not of a device or pipe" ]
  EMULATOR_FINDINGS=/none/list run -2 build/02_tma_load/tma_load
  [ "$output" = "emulator: EMULATOR_FINDINGS is '/none/list', but that file cannot be written: No such file or directory" ]
  EMULATOR_EXPLORE= run -2 build/02_tma_load/tma_load
  [[ $output == "emulator: EMULATOR_FINDINGS is '$list', but must be left out while orders are explored"* ]]
}

# ---- What silence means ----

# The value of an expression about r, what the first run says of itself.
run_of() { # EXPRESSION PROGRAM [ARGUMENT...]
  rm -f "$list"
  "$emulate" --summary --findings "$list" "${@:2}" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || true
  value "$list" "(lambda r: ($1))(d['runs'][0])"
}

@test "--summary: one line, the last one, says what the file says: what was checked and what was not" {
  [ "$(run_of "r['launches'], r['order'], len(r['checked']), r['left_out'], r['let_pass'], r['held_back']" \
    build/05_multicast/multicast)" = "(4, 'late', 8, ['swizzled tiles in loads and stores'], [], 0)" ]
  line=$(tail -n 1 "$BATS_TEST_TMPDIR/err")
  [[ $line == "emulator: summary: 4 launches in late order; checked: shared memory, global memory, "* ]]
  [[ $line == *"; left out by EMULATOR_CHECK: swizzled tiles in loads and stores; not looked at beyond a limit: nothing; let pass: nothing; held back"*": 0 findings" ]]
  # Without being asked for, there is no line; the file has it.
  run -0 --separate-stderr "$emulate" --findings "$list" build/05_multicast/multicast
  [ -z "$stderr" ]
  [ "$(value "$list" "len(d['runs'])")" = 1 ]
}

@test "--summary: checks that a setting leaves out; a program without a launch; a mistake" {
  local all="r['checked'], r['left_out'][:3]"
  [ "$(EMULATOR_CHECK=off run_of "$all" build/02_tma_load/first_load)" = "([], ['shared memory', 'global memory', 'lanes of a warp'])" ]
  [ "$(EMULATOR_CHECK=shared run_of "r['left_out']" build/02_tma_load/first_load)" = \
    "['global memory', 'lanes of a warp', 'streams', 'swizzled tiles in loads and stores']" ]
  [ "$(EMULATOR_CHECK=errors run_of "r['left_out'][0]" build/02_tma_load/first_load)" = "what only strict findings say" ]
  [ "$(EMULATOR_CHECK=layout EMULATOR_SCHEDULE=random:7 run_of "r['left_out'], r['order']" build/02_tma_load/first_load)" = "([], 'random:7')" ]
  [ "$(run_of "r['launches']" build/02_tma_load/encode_by_hand --help)" = 0 ]
  run_of "r" build/02_tma_load/pitfalls/read_without_wait >/dev/null
  grep -q "^emulator: summary: 1 launch in late order; " "$BATS_TEST_TMPDIR/err"
  [ "$(value "$list" "f['rule']")" = read-without-wait ]
}

@test "--summary: limits that a run goes beyond, and leniencies that it uses, and no others" {
  [ "$(run_of "r['beyond_limits'], r['let_pass']" build/02_tma_load/first_load)" = "([], [])" ]
  [ "$(run_of "r['beyond_limits']" build/02_tma_load/tma_load)" = \
    "['lanes of a warp in global memory, beyond its last four loads and stores']" ]
  [ "$(run_of "r['beyond_limits']" build/04_store_reduce/rounding)" = "['the oldest of more than 40 accesses to a word of \
shared memory', 'the oldest of more than 48 accesses to a word of global memory']" ]
  [ "$(run_of "r['let_pass']" build/tests/take/examples/pipelined_gemm_example)" = \
    "[\"one warp's wgmma.wait_group counts for its whole warpgroup\"]" ]
  local pitfalls=build/tests/joined/04_store_reduce/pitfalls
  [ "$(run_of "r['let_pass']" $pitfalls/volatile_for_syncwarp)" = "['a volatile access to shared memory orders the accesses around it']" ]
  [ "$(run_of "r['let_pass']" $pitfalls/volatile_instead_of_fence)" = "['a volatile access to global memory counts as atomic']" ]
}

@test "--findings: several programs add their runs to one file, behind the findings of all" {
  rm -f "$list"
  for program in pitfalls/read_without_wait first_load pitfalls/too_many_bytes; do
    EMULATOR_FINDINGS=$list "$emulate" build/02_tma_load/$program >/dev/null 2>&1 || true
  done
  [ "$(value "$list" "[r['program'].split('/')[-1] for r in d['runs']]")" = "['read_without_wait', 'first_load', 'too_many_bytes']" ]
  [ "$(value "$list" "sorted({x['program'].split('/')[-1] for x in d['findings']})")" = "['read_without_wait', 'too_many_bytes']" ]
}

@test "--summary with --explore, or given twice: refused" {
  emulate_refuses "--summary is for one order: leave it out here, and add it when you replay the saved schedule" \
    --summary --explore build/02_tma_load/first_load
  emulate_refuses "--summary is given twice: leave one out" --summary --summary build/02_tma_load/first_load
  EMULATOR_SUMMARY=yes run -2 "$emulate" build/02_tma_load/first_load
  [ "$output" = "emulator: EMULATOR_SUMMARY is 'yes', but must be 0 or 1" ]
}
