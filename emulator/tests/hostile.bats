#!/usr/bin/env bats
# Kernels and programs that misuse what they are given: nothing crashes the emulator, nothing reaches
# the host's memory, and each misuse is named.

load helpers
hostile=build/emulator/tests/hostile

misuse() { # CASE [EXIT_CODE]
  EMULATOR_CHECK=on run ${2:+"-$2"} timeout 600 emulator/emulate "$hostile" "$1"
}

@test "the device's heap: a use after free is named and reaches nothing" {
  misuse use-after-free 0
  [[ $output == *"emulator: use-after-free: kernel use_after_free"* ]]
  [[ $output == *"byte 0 of a block of 64 bytes"* ]]
  [[ $output == *"cudaDeviceSynchronize(): 700"* ]]
  [[ $output == *"bytes of the host changed: 0"* ]]
}

@test "the device's heap: freed twice, freed inside a block, freed what malloc has not given" {
  misuse free-twice
  [[ $output == *"emulator: double-free: kernel free_twice"* ]]
  misuse free-inside
  [[ $output == *"emulator: device-free: kernel free_inside"* ]]
  misuse free-foreign
  [[ $output == *"emulator: device-free: kernel free_foreign"* ]]
}

@test "the device's heap: a block ends at its last byte" {
  misuse overrun
  [[ $output == *"0 bytes past the end of a block of 50 bytes"* ]]
  misuse underrun
  [[ $output == *"is in the heap of the kernels' malloc, in front of"* ]]
  misuse last-byte
  [[ $output == *"cudaDeviceSynchronize(): 0"* ]]
  [[ $output != *"emulator:"* ]]
}

@test "the device's heap: what is given back serves again, in other sizes" {
  misuse fill-heap
  [ "$(grep -c 'most of 8 MiB' <<<"$output")" -eq 4 ]
}

@test "the device's heap: calls of the host may fill a block, and neither copy nor free it" {
  misuse heap-and-host
  [[ $output == *"cudaFree(block): 1 "* ]]
  [[ $output == *"cudaMemcpy(&answer, block, 4, cudaMemcpyDeviceToHost): 1 "* ]]
  [[ $output == *"cudaMemset(block, 0, 4): 0 "* ]]
  [[ $output != *"the heap was freed"* ]]
  [[ $output == *"sum 7"* ]]
}

@test "the device's printf: whole widths, stars, strings of local memory, lengths that the device knows" {
  misuse print 0
  grep -qE '^\[ {599}5\]$' <<<"$output"
  grep -qE '^1 \[0\.3{16}[0-9]{684}\] \[ab   \|   cd\|ef\] xy %$' <<<"$output"
  [[ $output == *"[      1] [2      ] [%.*f]"* ]]
  [[ $output == *"[local] [(null)] [1] [0] [%lld] [%zu]"* ]]
}

@test "the device's printf: a width without bounds, wild strings and formats" {
  misuse print-wide 0
  [[ $output == *"emulator: printf-width: "*"kernel print_wide"* ]]
  misuse print-wild-string 0
  [[ $output == *"(bad pointer) "* ]]
  misuse print-wild-format
  [[ $output == *"emulator: printf: kernel print_damaged"* ]]
  [[ $output == *"cudaDeviceSynchronize(): 700"* ]]
  misuse print-no-end 0
}

@test "hostile kernels drawn at random run to an end and reach nothing of the host's" {
  for schedule in late early random:9; do
    EMULATOR_SCHEDULE=$schedule run -0 timeout 600 build/emulator/tests/fuzz_hostile 1 700
    [[ $output == *"700 kernels"* ]]
    [[ $output != *"refused"* ]]
  done
}

@test "hostile host programs drawn at random end with an answer" {
  run -0 timeout 600 emulator/emulate build/emulator/tests/random_calls 60
  [[ $output == *"60 programs, 0 failures"* ]]
}

@test "every call of the runtime and the driver: zeros, garbage, stale and wrong handles end in an answer" {
  run -0 timeout 600 emulator/emulate build/emulator/tests/every_call
  [[ $output =~ ([0-9]+)" calls in 5 ways, 0 failures" ]]
  [ "${BASH_REMATCH[1]}" -gt 235 ]
}

@test "what a graph allocates can be freed outside, and is there again at its next launch" {
  misuse graph-memory
  [ "$(grep -c 'sum 496, launch 0' <<<"$output")" -eq 3 ]
  [ "$(grep -c 'free 0, again 1' <<<"$output")" -eq 3 ]
  [[ $output == *"emulator: use-after-free: "*"kernel fill"* ]]
  [[ $output == *"memory that a graph allocates"* ]]
}

@test "memory of the host that is not there is refused, and the call says so" {
  misuse host-memory 0
  [[ $output == *"register wild 1, huge 2, plain 0"* ]]
  [[ $output == *"copy to wild 1, from wild 1, to constant 1, past the end 1, async 1"* ]]
  [[ $output == *"emulator: host-memory: a copy of 16 bytes from host address 0x10"* ]]
  [[ $output == *"unmapped since: 700"* ]]
}

@test "pinned memory is freed, registered memory unregistered, a variable of the device neither" {
  misuse free-or-unregister 0
  [[ $output == *"free registered 1, variable 1; unregister pinned 1, variable 1"* ]]
  [[ $output == *"register pinned 1, around 1; unregister NULL 1"* ]]
  [[ $output == *"still there 0; free pinned 0, unregister registered 0"* ]]
}

@test "a CUtensorMap that is not aligned is taken as on an H200, and reported with its address" {
  misuse misaligned-map 0
  [[ $output == *"0 past: 0"*"16 past: 0"* ]]
  address=${output##*"the map's address is "}
  address=${address%%[^0-9a-fx]*}
  text=${output//$'\n  '/ }
  [[ $text == *"emulator: tensor-map-alignment: strict finding in the host's calls"* ]]
  [[ $text == *"cuTensorMapEncodeTiled writes a CUtensorMap at address $address, which is not a multiple of 64: it is 16 past one"* ]]
  EMULATOR_CHECK=strict run -3 emulator/emulate "$hostile" misaligned-map
}

@test "callbacks of streams and forked children may not call" {
  misuse callback
  [[ $output == *"in the callback: 800 800 800 800"* ]]
  [[ $output == *"behind it: 0"* ]]
  misuse fork
  [[ $output == *"child: 3 3 3"* ]]
  [[ $output == *"parent: 0"* ]]
  misuse fork-first
  [[ $output == *"child: 0 0 0"* ]]
}

@test "a process forks while a thread prints what a kernel has written: the child ends, the text comes once" {
  run -0 timeout 600 emulator/emulate build/emulator/tests/forked_output
  [ "$output" = "the child has ended, the text has 196608 of 196608 bytes" ]
}

@test "a wgmma whose descriptors are empty reads what the system keeps" {
  misuse empty-descriptors 3
  [[ $output == *"emulator: reserved-shared-memory: "* ]]
}

@test "instructions in one line of PTX: the end names that line once" {
  misuse null-shared 3
  grep -qE "2 times, by 2 instructions \(PTX line [0-9]+\)$" <<<"$output"
}

@test "a pointer of the host is called one, also near memory that the device may use" {
  for case in host-heap host-variable; do
    misuse $case
    [[ $output == *"is not device memory: it is a host pointer"* ]]
  done
  misuse past-pinned
  [[ $output == *"is 0 bytes past the end of an allocation of 100 bytes"* ]]
}

@test "without memory: a call returns the error, or a message ends the program; nothing crashes" {
  [ -z "${SANITIZE:-}" ] || skip "the sanitizer has its own malloc"
  EMULATOR_THREADS=2 run -0 emulator/emulate build/emulator/tests/out_of_memory --first 3 --step 9
  [[ $output == *"PASS out_of_memory: "* ]]
}

@test "a limit of the address space: the program gets cudaErrorMemoryAllocation" {
  [ -z "${SANITIZE:-}" ] || skip "the sanitizer needs more address space"
  run -1 bash -c 'ulimit -v 400000; LD_LIBRARY_PATH=build/emulator build/07_pipelined_gemm/ring'
  [[ $output == *"FAIL ring: cudaErrorMemoryAllocation"* ]]
}
