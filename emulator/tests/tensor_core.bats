#!/usr/bin/env bats
# The emulator's tensor cores: every form of wgmma gives the bits that an H200 gave
# (matrices.bats: mma.sync, ldmatrix, stmatrix, movmatrix). TENSOR_CASES=all replays a million results of each form (half a
# minute) where an ordinary run replays some tens of thousands.

load helpers
choose_tensor_cases

@test "matrix descriptors, without a machine around them" {
  run -0 build/emulator/tests/wgmma_layouts < <(gzip -dc emulator/tests/recorded/wgmma_layouts.txt.gz)
  [ "$output" = "PASS wgmma_layouts: 320 of 320 descriptors as on an H200" ]
}

@test "wgmma" { gives_the_recorded_bits wgmma_cases; }

@test "wgmma that lands at once, or when chance wills" {
  if [ -n "$option" ]; then every=1; else every=4; fi
  for schedule in early random:1; do
    EMULATOR_SCHEDULE=$schedule run -0 emulator/emulate build/emulator/tests/wgmma_cases $option \
      --every $every
    digests=$(grep ' results ' <<<"$output")
    [ "$(wc -l <<<"$digests")" -eq $(((41 + every - 1) / every)) ]
    different=$(grep -v -x -F -f "emulator/tests/recorded/wgmma_cases$suffix.txt" <<<"$digests") || true
    echo "$different"
    [ -z "$different" ]
  done
}

@test "tensor core: mma takes .satfinite behind the types, too, as CUTLASS writes it" {
  run -0 emulator/emulate build/emulator/tests/mma_saturation
  [ "$output" = "PASS mma_saturation" ]
}
