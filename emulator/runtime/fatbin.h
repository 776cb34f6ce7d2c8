/* fatbin.h: reads the container in which nvcc stores device code in an executable. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Finds the PTX in a container of at most `limit` bytes, preferring text for sm_90a. On success
 * *text is newly allocated and ends with a zero byte. Otherwise `error` says what is in there
 * instead and which nvcc flag to add. */
bool fatbin_find_ptx(const void *container, size_t limit, char **text, size_t *bytes, char *error,
                     size_t error_bytes);

/* The machine code for sm_90, newly allocated. False: there is none, or it cannot be read. */
bool fatbin_find_cubin(const void *container, size_t limit, char **cubin, size_t *bytes);

/* The wrapper that __cudaRegisterFatBinary receives: finds the container and its size. */
bool fatbin_unwrap(const void *wrapper, const void **container, size_t *bytes);

/* The size stated by the container. False: not a container. */
bool fatbin_size(const void *container, size_t *bytes);

/* Linked from several files (nvcc -rdc=true): the container holds machine code only, but the
 * containers of the files are kept, as a list that ends with NULL. NULL: not linked. */
const void *const *fatbin_linked(const void *wrapper);

/* One LZ4 block. False when the input is damaged. */
bool lz4_decompress(const unsigned char *input, size_t input_bytes, unsigned char *output,
                    size_t output_bytes);
