#!/usr/bin/env bats
# make check-page: the page of ten recordings, each at 200 moments, forward and back.

load ../helpers
load ../page_helpers

setup() {
  bats_require_minimum_version 1.5.0
  BATS_TEST_DIRNAME=${BATS_TEST_DIRNAME%/long}
  begin_test
}

@test "page: 01_tiledcopy_baseline/tiledcopy_baseline, 200 moments" {
  page_passes 01_tiledcopy_baseline/tiledcopy_baseline 200
}

@test "page: 02_tma_load/tma_load, 200 moments" {
  page_passes 02_tma_load/tma_load 200
}

@test "page: 03_tma_store/tma_store, 200 moments" {
  page_passes 03_tma_store/tma_store 200
}

@test "page: 04_store_reduce/store_reduce, 200 moments" {
  page_passes 04_store_reduce/store_reduce 200
}

@test "page: 05_multicast/multicast, 200 moments" {
  page_passes 05_multicast/multicast 200
}

@test "page: 06_swizzle_3d/swizzle_3d, 200 moments" {
  page_passes 06_swizzle_3d/swizzle_3d 200
}

@test "page: 07_pipelined_gemm/serial, 200 moments" {
  page_passes 07_pipelined_gemm/serial 200
}

@test "page: 02_tma_load/pitfalls/too_many_bytes, 200 moments" {
  page_passes 02_tma_load/pitfalls/too_many_bytes 200
}

@test "page: 03_tma_store/pitfalls/missing_proxy_fence, 200 moments" {
  page_passes 03_tma_store/pitfalls/missing_proxy_fence 200
}

@test "page: tests/emulator/foreign_gemm, 200 moments" {
  page_passes tests/emulator/foreign_gemm 200
}
