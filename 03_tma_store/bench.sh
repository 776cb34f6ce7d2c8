#!/usr/bin/env bash
# bench.sh: what chapter 03 measures. make bench runs it; tables to stdout, CSV under build/.
#   copy_speed.csv   all ways to copy, against cudaMemcpy

set -eu
cd "$(dirname "$0")/.."
chapter=build/03_tma_store
source common/make/bench-tools

"$chapter/copy_speed" --bench
stamp_tables "$chapter/copy_speed.csv"
