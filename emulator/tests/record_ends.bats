#!/usr/bin/env bats
# Recordings, pages and traces of programs that end badly, and of files that cannot be written: a message each, and
# never half a file.

load helpers

setup() {
  begin_test
  program=build/emulator/tests/ends_early
  record=$BATS_TEST_TMPDIR/recording
  page=$BATS_TEST_TMPDIR/page.html
  trace=$BATS_TEST_TMPDIR/trace.json
}

recorded() { # CLUSTERS
  run -0 python3 emulator/tests/check_recording.py "$record"
  [[ $output == "recording: $1 clusters, "* ]]
}

@test "recording: a program that crashes, aborts, is interrupted or leaves by _exit: what it did until then" {
  for way in "crash 139 11" "abort 134 6" "interrupted 130 2" "exit 3"; do
    read -r how code signal <<<"$way"
    # A sanitizer would report the fault that the program makes on purpose.
    ASAN_OPTIONS+=:handle_segv=0 TSAN_OPTIONS+=:handle_segv=0 \
      run emulator/emulate --record "$record" --page "$page" --trace "$trace" $program "$how"
    [ "$status" -eq "$code" ]
    [ -z "$signal" ] || [[ $output == *"emulate: signal $signal (SIG"*") ended the program; what it did until then was recorded"* ]]
    recorded 1
    grep -q '"end": ' "$page"
    run -0 python3 emulator/tests/check_trace.py "$trace"
  done
}

@test "recording: without a kernel nothing stays behind" {
  run -1 emulator/emulate --record "$record" --page "$page" --trace "$trace" $program none
  [[ $output == *"emulate: nothing is written: the program launched no kernel"* ]]
  [ ! -e "$record" ]
  [ ! -e "$page" ]
  [ ! -e "$trace" ]
}

@test "recording: a child process that launches kernels does not write over it" {
  run -0 emulator/emulate --record "$record" $program child
  [[ $output == *"emulator: another process is writing the recording; kernels of this one are not recorded"* ]]
  recorded 2
}

@test "recording: a limit is reported on stderr and in the file, and later launches add nothing" {
  EMULATOR_RECORD_LIMIT=1 run -0 emulator/emulate --record "$record" $program many
  [[ $output == *"emulator: the recording has reached 1 MB and stops here; record fewer blocks"* ]]
  [ "$(stat -c %s "$record")" -le 1100000 ]
  run grep "^{\"stopped\"" "$record"
  [[ $output == '{"stopped": "the recording reached its limit of 1 MB in launch '*': the rest of it and all later launches are missing"}' ]]
}

@test "recording: blocks that no launch has" {
  for kind in record page trace; do
    run -2 emulator/emulate --$kind "$record" --blocks 4000 $program
    [[ $output == *"emulator: no launch has a block of --blocks 4000: nothing is recorded"* ]]
    [[ $output == *"emulate: nothing is written: no block was recorded" ]]
    [ ! -e "$record" ]
  done
}

@test "recording: a full disk and files that cannot be made, for each kind of output" {
  for kind in record page trace; do
    run -2 emulator/emulate --$kind /dev/full $program
    [[ $output == *"/dev/full cannot be written"* ]]
    [ -c /dev/full ]
    run -2 emulator/emulate --$kind "$BATS_TEST_TMPDIR/nowhere/file" $program
    [[ $output == *"emulate: $BATS_TEST_TMPDIR/nowhere/file cannot be written: No such file or directory"* ]]
    run -2 emulator/emulate --$kind "$BATS_TEST_TMPDIR" $program
    [[ $output == *"$BATS_TEST_TMPDIR cannot be written: Is a directory"* ]]
  done
}

@test "recording: a disk that fills up leaves whole launches" {
  run -2 bash -c "ulimit -f 64; trap '' XFSZ; emulator/emulate --record '$record' $program many"
  [[ $output == *"emulator: the recording $record.unfinished."*" cannot be written: File too large"* ]]
  run -0 python3 emulator/tests/check_recording.py "$record"
}

@test "recording: into a pipe" {
  mkfifo "$record"
  cat "$record" >"$BATS_TEST_TMPDIR/piped" &
  run -0 emulator/emulate --record "$record" $program
  wait
  record=$BATS_TEST_TMPDIR/piped
  recorded 1
}

@test "recording: one that is cut in its last line is said to be cut off, by each reader" {
  run -0 emulator/emulate --record "$record" $program
  lines=$(wc -l <"$record")
  for bytes in 20 300 -1 -2 -30; do
    head -c $bytes "$record" >"$BATS_TEST_TMPDIR/cut"
    [ "$bytes" != -1 ] || continue # only the line's end is missing
    run -1 python3 -B -c 'import sys; sys.path.insert(0, "emulator/record"); import recording; recording.Recording(sys.argv[1])' "$BATS_TEST_TMPDIR/cut"
    [[ $output == "$BATS_TEST_TMPDIR/cut is cut off in line "[0-9]*": it was not written or copied to its end" ]]
    run python3 -B emulator/record/trace.py "$BATS_TEST_TMPDIR/cut"
    [[ $output == *"cut is cut off in line "* ]]
    emulator/page/assemble cut "$BATS_TEST_TMPDIR/cut" "$page" ""
    command -v node >/dev/null || skip "no node to run the page's script (on Debian: apt-get install nodejs)"
    run node -e '
      const fs = require("fs"), vm = require("vm"), context = {};
      vm.createContext(context);
      vm.runInContext(fs.readFileSync("emulator/page/recording.js", "utf8"), context);
      context.text = fs.readFileSync(process.argv[1], "utf8").split(/<script[^>]*class="recording"[^>]*>/)[1].split("</script>")[0];
      console.log(vm.runInContext("try { for (const c of readRecording(text).clusters) clusterEvents(c); 0 } catch (e) { e.message }", context));' "$page"
    [[ $output == "the recording is cut off in line "[0-9]*": it was not written or copied to its end" ]]
  done
}
