/* tensor_map_encode.c: a tensor map from the driver's own encoder, found through the runtime, so
 * that no program needs -lcuda. */
#include "tensor_map.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

typedef CUresult (*EncodeTiled)(CUtensorMap *tensor_map, CUtensorMapDataType type, cuuint32_t rank,
                                void *address, const cuuint64_t *size,
                                const cuuint64_t *stride_bytes, const cuuint32_t *box,
                                const cuuint32_t *element_stride, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2_promotion,
                                CUtensorMapFloatOOBfill fill);

static EncodeTiled find_encoder(const char *name) {
  static EncodeTiled encoder;
  if (encoder != NULL) return encoder;
  void *entry = NULL;
  enum cudaDriverEntryPointQueryResult found;
  /* 12000: the version of the driver's interface that introduced the call. */
  cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000,
                                                       cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess || entry == NULL) {
    fprintf(stderr,
            "tensor map %s: this driver has no cuTensorMapEncodeTiled (%s): it needs the driver of "
            "CUDA 12.0 or newer\n",
            name, cudaGetErrorString(error));
    exit(2);
  }
  encoder = (EncodeTiled)entry;
  return encoder;
}

CUtensorMap tensor_map_encode(const char *name, const TensorMap *given) {
  char text[4096];
  int broken = tensor_map_explain(given, text, sizeof text);
  if (broken > 0) {
    fprintf(stderr, "tensor map %s breaks %d rule%s:\n%s", name, broken, broken == 1 ? "" : "s",
            text);
    exit(2);
  }

  /* The call needs a current context, which the first call to the runtime makes. */
  EncodeTiled encode = find_encoder(name);
  cudaError_t error = cudaFree(NULL);
  if (error != cudaSuccess) {
    fprintf(stderr, "tensor map %s: no context for the encoder: %s\n", name,
            cudaGetErrorString(error));
    exit(2);
  }

  const TensorMap map = tensor_map_resolved(given);
  CUtensorMap encoded;
  CUresult result =
      encode(&encoded, map.type, (cuuint32_t)map.rank, map.address, map.size, map.stride_bytes,
             map.box, map.element_stride, map.interleave, map.swizzle, map.l2_promotion, map.fill);
  if (result != CUDA_SUCCESS) {
    fprintf(stderr,
            "tensor map %s: the driver refuses it (error %d), but no rule that we know is broken: "
            "our rules missed something. The map:\n",
            name, (int)result);
    tensor_map_print(stderr, &map);
    exit(2);
  }
  return encoded;
}
