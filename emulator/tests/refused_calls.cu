/* refused_calls.cu: is linked with calls that the emulator refuses, and makes them only with an argument. */
#include <stdio.h>

int main(int argc, char **argv) {
  (void)argv;
  cudaArray_t array;
  const cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  if (argc > 1) cudaMallocArray(&array, &format, 4);
  puts("refused_calls: the end");
  return 0;
}
