/* tensor_map_encode.c: a tensor map from the driver's own encoder, found through the runtime, so
 * that no program needs -lcuda. */
#include "tensor_map.h"

#include <stdlib.h>

#include "tma_encode.h"

/* A tool that shows what a program copies may define this function, to call tensors by their names. */
__attribute__((weak)) void tensor_map_named(const void *map, const char *name);

CUtensorMap tensor_map_encode(const char *name, const TensorMap *given) {
  char text[4096];
  int broken = tensor_map_explain(given, text, sizeof text);
  if (broken > 0) {
    fprintf(stderr, "tensor map %s breaks %d rule%s:\n%s", name, broken, broken == 1 ? "" : "s",
            text);
    exit(2);
  }

  void *encode = NULL;
  cudaError_t error = tma_find_encoder("cuTensorMapEncodeTiled", &encode);
  if (error == cudaErrorSymbolNotFound) {
    fprintf(stderr,
            "tensor map %s: this driver has no cuTensorMapEncodeTiled: it needs the driver of CUDA "
            "12.0 or newer\n",
            name);
    exit(2);
  }
  if (error != cudaSuccess) {
    fprintf(stderr, "tensor map %s: no context for the encoder: %s\n", name,
            cudaGetErrorString(error));
    exit(2);
  }

  const TensorMap map = tensor_map_resolved(given);
  /* An array, because clang would build a plain variable where the caller wants the result, and g++ does not align
   * that place when the result is assigned. */
  CUtensorMap encoded[1];
  CUresult result = ((TmaEncodeTiled)encode)(
      encoded, map.type, (cuuint32_t)map.dimensions, map.address, map.size, map.stride_bytes,
      map.box, map.element_stride, map.interleave, map.swizzle, map.l2_promotion, map.fill);
  if (result != CUDA_SUCCESS) {
    fprintf(stderr,
            "tensor map %s: the driver refuses it (error %d), but no rule that we know is broken: "
            "our rules missed something. The map:\n",
            name, (int)result);
    tensor_map_print(stderr, &map);
    exit(2);
  }
  if (tensor_map_named) tensor_map_named(encoded, name);
  return encoded[0];
}
