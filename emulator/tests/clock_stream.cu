// clock_stream: chapter 05's stream through shared memory, with and without multicast, launched twice
// each on 120 blocks as shared_stream measures it, with fewer tiles, for the emulator's clock. Nothing
// is checked: shared_stream does that.
#define main shared_stream_main
#include "../../05_multicast/shared_stream.cu"
#undef main
#include "device_memory.cuh"

int main(int argc, char **argv) {
  enum { GRID = 120, LAUNCHES = 2 };
  long tiles = 32, cluster = 2, mebibytes = 16;
  Option options[] = {{"--tiles", "tiles into each block", &tiles, 1, 512},
                      {"--cluster", "blocks in a cluster", &cluster, 1, MOST_BLOCKS},
                      {"--mebibytes", "size of the stream", &mebibytes, 1, 2048}};
  program_begin("clock_stream", argc, argv, options, 3);
  size_t bytes = (size_t)mebibytes << 20;
  uint32_t *stream = device_filled<uint32_t>(bytes / 4, 1);
  uint32_t *sums = device_memory<uint32_t>(GRID * TILE_BYTES / 16);
  for (int way = SEPARATE; way < (cluster > 1 ? WAYS : MULTICAST); way++) {
    for (int i = 0; i < LAUNCHES; i++)
      launch(stream, (int)(bytes / TILE_BYTES), (int)tiles, (Way)way, sums, GRID, (int)cluster);
    CUDA_CHECK(cudaDeviceSynchronize());
    printf("%s\n", way_names[way]);
  }
  return program_end("launched, not checked");
}
