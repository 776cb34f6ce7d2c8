// encode: tensor_map_encode gives the driver's bytes for a legal map, and for a broken one it
// explains and ends the program.
//
//   encode             a legal map, compared with tensor_map_pack's bytes
//   encode --broken 1  breaks two rules: explained on stderr, exit code 2
#include <string.h>

#include "check.h"
#include "tensor_map.h"

int main(int argc, char **argv) {
  long broken = 0;
  const Option options[] = {{"--broken", "1: encode a map that breaks two rules", &broken, 0, 1}};
  program_begin("encode", argc, argv, options, 1);
  void *matrix;
  CUDA_CHECK(cudaMalloc(&matrix, 2 * 1024 * 1024));
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                   .dimensions = 2,
                   .address = matrix,
                   .size = {1024, 1024},
                   .box = {64, 128},
                   .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
  if (broken) {
    map.size[0] = 1001;
    map.box[1] = 512;
  }
  CUtensorMap encoded = tensor_map_encode("matrix", &map);
  uint64_t words[16];
  check_that(tensor_map_pack(&map, words), "the map does not pack");
  check_that(memcmp(&encoded, words, sizeof words) == 0, "packed and encoded bytes differ");
  CUDA_CHECK(cudaFree(matrix));
  return program_end("encoded and packed bytes are equal");
}
