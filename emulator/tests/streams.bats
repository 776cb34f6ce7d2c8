#!/usr/bin/env bats
# What orders the work of streams, graphs and the host.

load helpers

setup() {
  begin_test
  export LD_LIBRARY_PATH="build/emulator"
}

# reports CASE RULE TEXT...: the first report is of this rule, and names these
reports() {
  echo "$1"
  run -3 build/emulator/tests/stream_cases "$1"
  [[ "$output" = "emulator: $2: error in "* ]]
  local text
  for text in "${@:3}"; do grep -qF "$text" <<<"$(tr -s '\n ' '  ' <<<"$output")"; done
}

@test "streams: a missing event is reported, with both operations and their streams" {
  reports kernels_without_event stream-race "kernel add in stream 1 wrote" "This is kernel add in stream 2"
  reports copy_without_event stream-race "the copy of 4096 bytes in stream 2 reads" "kernel add in stream 1"
  reports kernel_after_copy stream-race "the copy of 4096 bytes in stream 1 wrote"
  reports event_recorded_too_early stream-race
  reports rows_without_event stream-race "the copy of 8 rows of 64 bytes in stream 1 reads byte 64"
}

@test "streams: a copy or fill writes what a copy of another stream reads" {
  reports copy_over_what_a_copy_reads stream-race "the copy of 4096 bytes in stream 2 writes byte 0" \
    "which the copy of 4096 bytes in stream 1 read"
  reports fill_over_what_a_copy_reads stream-race "the fill of 4096 bytes in stream 2 writes"
  reports copies_through_pinned stream-race "in stream 2 writes"
}

@test "streams: the default stream does not wait for every stream" {
  reports fill_of_default_stream stream-race "the fill of 4096 bytes in the legacy default stream"
}

@test "graphs: a missing edge is reported" {
  reports graph_without_edge stream-race
}

@test "streams: memory freed while another stream uses it" {
  reports freed_while_in_use freed-while-in-use "cudaFreeAsync in stream 1 frees" "kernel add in stream 2 wrote"
}

@test "streams: the host changes memory of an asynchronous copy" {
  reports source_changed host-touches-copy "the source of an asynchronous copy of 4096 bytes"
  reports destination_changed host-touches-copy "the destination of"
}

@test "streams and graphs: what is in order is not reported" {
  for name in graph_with_edge with_event default_stream_between host_between copies_in_parts readers \
    captured allocated_in_order host_function pinned_in_order freed_after_use rows_apart flags_between_streams; do
    echo "$name"
    run -0 build/emulator/tests/stream_cases "$name"
    [ -z "$output" ]
  done
}
