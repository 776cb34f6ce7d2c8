#!/usr/bin/env bats
# Each pitfall with its fix is silent, in any order of the copies; and so are the compiler's messages of serialised_wgmma.
# builds: tests/joined/%/fixed/joined

load helpers

# Prints what is wrong with one fixed pitfall; nothing when all is as it should be.
try_fixed() { # SOURCE
  local name schedule code text
  name=$(basename "$1" .cu)
  EMULATOR_CHECK=$(check_for "$1")
  export EMULATOR_CHECK
  for schedule in late random:{1..5}; do
    text=$(EMULATOR_SCHEDULE=$schedule timeout -s KILL 600 "build/tests/joined/${1%/pitfalls/*}/fixed/$name" 2>&1)
    code=$?
    if [ $code -ne 0 ] || [[ $text == *emulator:* ]] || [[ $text != *$'\n'"PASS $name: "* ]]; then
      echo "$name fixed, $schedule: exit code $code"$'\n'"$text"
    fi
  done
}

@test "each pitfall with its fix is silent, and right" {
  each_pitfall try_fixed 0*/pitfalls/*.cu 0*/*/pitfalls/*.cu
}

# "C7510 c7510" and so on: what ptxas says of which kernel of serialised_wgmma.
said_of_wgmma() { # OPTIONS OF NVCC...
  "$NVCC" -std=c++14 -O3 -gencode arch=compute_90a,code=sm_90a -Icommon "$@" -cubin \
    -o "$BATS_TEST_TMPDIR/cubin" 07_pipelined_gemm/serialised_wgmma.cu 2>&1 |
    sed -nE "s/.*\((C75[0-9]{2})\).*'_Z[0-9]+(c[0-9]+)P.*/\1 \2/p" | sort -u
}

@test "serialised_wgmma: each mistake brings the message that its kernel is named after, and its repair none" {
  local kernel message found release
  release=$("$NVCC" --version | sed -n 's/.*, V//p')
  found=$(said_of_wgmma -DMISTAKES; said_of_wgmma -DMISTAKES -rdc=true)
  echo "$release: $found"
  for kernel in $(grep -oE '\{"c75[0-9]{2}"' 07_pipelined_gemm/serialised_wgmma.cu | tr -d '{"'); do
    message="${kernel^} $kernel"
    # After CUDA 13.0, C7519 is what was C7520 there, and nothing is said of the fence that is inserted.
    case $release:$kernel in
      13.0.*) ;;
      *:c7519) [[ $found != *c7519* ]] || return 1; continue ;;
      *:c7520) message="C7519 c7520" ;;
    esac
    grep -qx "$message" <<<"$found"
  done
  found=$(said_of_wgmma)
  [ -z "$found" ]
}
