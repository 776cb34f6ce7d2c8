/* cublas.c: a library that brings its own runtime and machine code without PTX.
 *
 * build: -cudart shared -lcublas
 */
#include <cublas_v2.h>

int main(void) {
  cublasHandle_t handle;
  return cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS;
}
