# What the tests of recordings share. A test sets recording, the file; schedule; and perhaps blocks.

# A recorded run prints what an unrecorded one prints, and its recording replays to the final memory.
records_faithfully() { # PROGRAM [mistaken]
  EMULATOR_SCHEDULE=$schedule run --separate-stderr emulator/emulate "build/$1"
  # Only while nothing is recorded a last line offers to do so.
  local plain_status=$status plain_output=$output plain_stderr=${stderr%$'\n'"See it: "*}
  EMULATOR_SCHEDULE=$schedule EMULATOR_RECORD=$recording EMULATOR_RECORD_BLOCKS=${blocks:-first} \
    run --separate-stderr emulator/emulate "build/$1"
  [ "$status" -eq "$plain_status" ]
  [ "$output" = "$plain_output" ]
  [ "$stderr" = "$plain_stderr" ]
  run python3 emulator/tests/check_recording.py "$recording" "${@:2}"
  [ "$status" -eq 0 ] || {
    echo "$1: $output"
    return 1
  }
  [[ $output == *" clusters, "*" events, all consistent" ]]
}
