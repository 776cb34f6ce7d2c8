/* gemm_status.cuh: errors as values, and the message that explains them. */
#ifndef PIPELINED_GEMM_GEMM_STATUS_CUH
#define PIPELINED_GEMM_GEMM_STATUS_CUH

#include "gemm_types.cuh"

typedef enum {
  GEMM_OK,
  GEMM_NULL_POINTER,
  GEMM_MISALIGNED,    /* value bytes past a multiple of `least` bytes */
  GEMM_OUT_OF_RANGE,  /* value is not in least to most */
  GEMM_UNSUPPORTED,   /* `what` says what, and why */
  GEMM_NOT_FOR_SHAPE, /* the configuration that was asked for cannot compute this product */
  GEMM_CUDA_FAILED,   /* `cuda` says why */
  GEMM_UNKNOWN_NAME,  /* no configuration has the name `what` */
  GEMM_CAPTURING      /* the stream records launches into a graph and runs none */
} GemmError;

typedef struct {
  GemmError error;
  const char *what; /* the argument, or the call */
  int64_t value, least, most;
  cudaError_t cuda;
} GemmStatus;

static inline GemmStatus gemm_status(GemmError error, const char *what, int64_t value,
                                     int64_t least, int64_t most) {
  GemmStatus status = {error, what, value, least, most, cudaSuccess};
  return status;
}

static inline GemmStatus gemm_cuda_status(cudaError_t cuda, const char *what) {
  GemmStatus status = {cuda == cudaSuccess ? GEMM_OK : GEMM_CUDA_FAILED, what, 0, 0, 0, cuda};
  return status;
}

/* Appends a text, or a number, to what the buffer holds; what does not fit is cut off. */
typedef struct {
  char *text;
  size_t size, used;
} GemmText;

static inline void gemm_say(GemmText *to, const char *words) {
  while (*words != 0 && to->used + 1 < to->size) to->text[to->used++] = *words++;
  if (to->used < to->size) to->text[to->used] = 0;
}

static inline void gemm_say_number(GemmText *to, int64_t number) {
  char digits[24];
  int at = sizeof(digits) - 1;
  uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  digits[at] = 0;
  do {
    digits[--at] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  if (number < 0) digits[--at] = '-';
  gemm_say(to, digits + at);
}

/* Writes a sentence about what went wrong: which argument, which rule, how to fix it. */
static inline void pipelined_gemm_explain(GemmStatus status, char *text, size_t size) {
  GemmText to = {text, size, 0};
  gemm_say(&to, status.error == GEMM_OK ? "no error" : status.what);
  switch (status.error) {
    case GEMM_OK:
      break;
    case GEMM_NULL_POINTER:
      gemm_say(&to, " is a null pointer: give memory of the device");
      break;
    case GEMM_MISALIGNED:
      gemm_say(&to, " starts ");
      gemm_say_number(&to, status.value);
      gemm_say(&to, status.value == 1 ? " byte past a multiple of " : " bytes past a multiple of ");
      gemm_say_number(&to, status.least);
      gemm_say(&to, ": matrices start at a multiple of their element's size");
      break;
    case GEMM_OUT_OF_RANGE:
      gemm_say(&to, " is ");
      gemm_say_number(&to, status.value);
      gemm_say(&to, ", but must be ");
      gemm_say_number(&to, status.least);
      if (status.least != status.most) {
        gemm_say(&to, " to ");
        gemm_say_number(&to, status.most);
      }
      break;
    case GEMM_UNSUPPORTED:
      break;
    case GEMM_NOT_FOR_SHAPE:
      gemm_say(&to, " cannot compute this product: its k is too short, or the layouts do not fit");
      break;
    case GEMM_CUDA_FAILED:
      gemm_say(&to, " failed: ");
      gemm_say(&to, cudaGetErrorString(status.cuda));
      break;
    case GEMM_UNKNOWN_NAME:
      gemm_say(&to, " is no configuration's name: give one that pipelined_gemm_name() returned");
      break;
    case GEMM_CAPTURING:
      gemm_say(&to,
               " is capturing a graph, so nothing can be measured in it: plan before the capture "
               "begins");
      break;
  }
}

#endif
