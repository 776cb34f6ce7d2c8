// clock_copies: chapter 03's ways to copy 16 MiB, launched twice each (the second time from L2, as
// copy_speed measures them), for the emulator's clock. Nothing is checked: copy_speed does that. It is built
// with machine code, which tells the clock how many loads a warp has under way.
//
//   clock_copies [--tile 0 to 5]     16x16, 32x32, 8x256, 64x64, 128x64, 32x256
#define main copy_speed_main
#include "../../03_tma_store/copy_speed.cu"
#undef main
#include "device_memory.cuh"

int main(int argc, char **argv) {
  enum { TILES = 6, LAUNCHES = 2 };
  long tile = 3, mebibytes = 16;
  Option options[] = {{"--tile", "which tile, 0 to 5", &tile, 0, TILES - 1},
                      {"--mebibytes", "size of the matrix", &mebibytes, 1, 1024}};
  program_begin("clock_copies", argc, argv, options, 2);
  CopyJob job = {NULL, NULL, mebibytes * (1 << 20) / 2 / COPY_BENCH_COLUMNS, COPY_BENCH_COLUMNS};
  job.source = device_filled<uint16_t>((size_t)mebibytes << 19, 1);
  CUDA_CHECK(cudaMalloc(&job.destination, (size_t)mebibytes << 20));
  for (int i = 1 + (int)tile; i < WAYS; i += TILES) {
    if (ways[i].prepare) ways[i].prepare(&job, &ways[i]);
    for (int launch = 0; launch < LAUNCHES; launch++) ways[i].launch(&job, &ways[i]);
    CHECK_LAUNCH();
    printf("%s %dx%d\n", ways[i].name, ways[i].tile_rows, ways[i].tile_columns);
  }
  return program_end("launched, not checked");
}
