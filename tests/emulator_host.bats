#!/usr/bin/env bats
# The host's own loads and stores to memory that the device uses meanwhile.

load helpers

setup() {
  begin_test
  export LD_LIBRARY_PATH="build/emulator"
}

# reports CASE RULE TEXT...: the one report is of this rule, and names these
reports() {
  if grep -q __tsan_init build/tests/emulator/host_touches; then
    skip "ThreadSanitizer starts a thread, and programs with threads are not watched"
  fi
  run build/tests/emulator/host_touches "$1"
  echo "$1: $output"
  [ "$status" -eq 3 ] || return 1
  [[ "$output" = "emulator: $2: error in the host's calls"* ]] || return 1
  [ "$(grep -c '^emulator: ' <<<"$output")" -eq 2 ] || return 1 # and the summary
  local text
  for text in "${@:3}"; do grep -qF "$text" <<<"$(tr -s '\n ' '  ' <<<"$output")" || return 1; done
}

@test "host: managed memory is touched while a kernel may run" {
  local kernel="kernel fill in stream 1 wrote at host_touches.cu:" line
  line=$(grep -n 'data\[i\] = value' tests/emulator/host_touches.cu | cut -d: -f1)
  reports managed-read host-race "reads byte 0 of an allocation of 16384 bytes in first_element" "$kernel$line"
  reports managed-write host-race "writes byte 16380 of" "in managed_write"
  reports managed-variable host-race "of an allocation of 4 bytes in managed_variable" "in the legacy default stream"
  reports in-a-graph host-race "in first_element"
}

@test "host: pinned and registered memory is touched while a kernel may run" {
  reports pinned-read host-race "reads byte 0"
  reports registered-read host-race "reads byte 8192 of an allocation of 24576 bytes"
  reports write-over-what-is-read host-race "writes byte 400" "kernel take in stream 1 read at"
}

@test "host: single bytes, functions of libraries and system calls" {
  reports one-element host-race "reads byte 1200 of" "in one_element"
  reports library-reads host-race "in library_reads"
  reports system-call-reads host-race "reads byte 0 of" "in system_call_reads"
  reports system-call-at-page-end host-race "reads byte 0 of" "in system_call_at_page_end"
}

@test "host: an asynchronous copy's memory is touched too early" {
  reports copied-too-early host-touches-copy "has read the destination of an asynchronous copy of 16384 bytes in stream 1" \
    "byte 0 of" "in first_element"
  reports source-changed host-touches-copy "has changed the source of" "byte 36 of" "in source_changed"
}

@test "host: waiting for another stream or an earlier event is not enough" {
  reports other-stream-awaited host-race "in stream 1"
  reports second-kernel-not-awaited host-race "kernel fill in stream 1 wrote"
}

silent() { # CASE...
  local each
  for each in "$@"; do
    run timeout 600 build/tests/emulator/host_touches "$each"
    echo "$each: $output"
    [ "$status" -eq 0 ] || return 1
    [ -z "$output" ] || return 1
  done
}

@test "host: what is in order, and what lies beside, is not reported" {
  silent after-waiting other-parts kernel-tells host-function cleared pageable-copy freed
}

@test "host: system calls, signals, threads and processes of the program work as before" {
  silent system-calls-beside own-handler threads processes memory-of-the-stack
  silent alarms
  # A sanitizer would report the fault that the program makes on purpose.
  ASAN_OPTIONS+=:handle_segv=0 TSAN_OPTIONS+=:handle_segv=0 silent default-action
}

@test "host: a program may block every signal, and its handlers may, too" {
  silent handler-blocks-all program-blocks-all
}

@test "host: a signal that the program has blocked reaches none of the emulator's threads" {
  EMULATOR_THREADS=4 silent blocked-signal
}

@test "host: nothing of this without the checks" {
  for check in off shared; do
    EMULATOR_CHECK=$check run build/tests/emulator/host_touches managed-read
    [ "$status" -eq 0 ]
    [ -z "$output" ]
  done
}
