#!/usr/bin/env bats
# The figures of the chapters are what common/book/draw.py draws from recordings now.
# builds: %/first_load %/tma_load %/tma_store %/multicast %/masks %/swizzle_3d %/bank_conflicts %/serial %/ring
# builds: %/producer_consumer %/two_consumers %/persistent %/overlapped_epilogue %/pipelined_gemm 07_pipelined_gemm/attention/attention%

load helpers

@test "figures: every drawing in the chapters is up to date" {
  run -0 python3 common/book/draw.py --to "$BATS_TEST_TMPDIR" [0-9][0-9]_*
  for drawn in "$BATS_TEST_TMPDIR"/*/figures/*.svg; do
    kept=${drawn#"$BATS_TEST_TMPDIR"/}
    cmp "$kept" "$drawn" || {
      echo "$kept is stale: type make figures"
      return 1
    }
  done
}

@test "figures: no drawing is left over, and each is well-formed and has a title" {
  for kept in [0-9][0-9]_*/{,*/}figures/*.svg; do
    run python3 -c 'import sys, xml.dom.minidom as m; print(len(m.parse(sys.argv[1]).getElementsByTagName("title")))' "$kept"
    [ "$output" = 1 ]
    grep -q "prefers-color-scheme: dark" "$kept"
    grep -q "\"$(basename "$kept" .svg)\": " common/book/draw.py
  done
}

@test "figures: draw.py says which program is not built" {
  root=$BATS_TEST_TMPDIR/root
  mkdir -p "$root/common/book" "$root/emulator/record"
  cp common/book/draw.py common/book/tables.py common/book/picture.py "$root/common/book/"
  cp emulator/record/recording.py "$root/emulator/record/"
  script "$root/emulator/emulate" 'exit 2'
  run ! python3 "$root/common/book/draw.py" 02_tma_load
  [[ $output == *"02_tma_load/first_load recorded nothing: build it first"* ]]
  run ! python3 common/book/draw.py
  [[ $output == *"usage: draw.py"* ]]
}
