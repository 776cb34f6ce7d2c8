/* check.h: how every program here starts, checks what it computed, and ends.
 *
 *   int main(int argc, char **argv) {
 *     program_begin("tma_load", argc, argv, NULL, 0);       prints the device, reads options
 *     CUDA_CHECK(cudaMalloc(&data, bytes));                 explains an error and exits 1
 *     check_tile("tile (0,0)", ELEMENT_S32, got, expected, 16, 16, 0);
 *     return program_end("64 tiles, every element");        PASS or FAIL, and the exit code
 *   }
 *
 * Exit codes: 0 PASS, 1 FAIL, 2 bad arguments, 77 SKIP (this machine cannot run it). */
#ifndef COMMON_CHECK_H
#define COMMON_CHECK_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#include "element.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { EXIT_PASS = 0, EXIT_FAIL = 1, EXIT_USAGE = 2, EXIT_SKIP = 77 };

/* Checks the result of a call. On an error it prints file, line, the call, the error's name and
 * description and, for errors that are common with TMA, the likely causes, and ends with FAIL. A
 * kernel launch returns nothing: follow it with CUDA_CHECK(cudaGetLastError()), and with
 * CUDA_CHECK(cudaDeviceSynchronize()) to see what went wrong while it ran. */
#define CUDA_CHECK(call) check_cuda((call), #call, __FILE__, __LINE__)
#define CU_CHECK(call) check_cu((call), #call, __FILE__, __LINE__)
void check_cuda(cudaError_t error, const char *call, const char *file, int line);
void check_cu(CUresult result, const char *call, const char *file, int line);

/* The likely causes of an error, or NULL if there is nothing to add to its description. */
const char *error_hint(cudaError_t error);

/* An option "--name VALUE" or "--name=VALUE" (a whole number within least..most), or a flag "--name"
 * when least and most are both 0: then value becomes 1. A value below least before the options are
 * read means that the option was not given. */
typedef struct {
  const char *name;
  const char *meaning;
  long *value;
  long least, most;
} Option;

/* Prints "device: ..." and reads the options. No usable GPU: SKIP. Bad arguments: usage, exit 2. */
void program_begin(const char *name, int argc, char **argv, const Option *options,
                   int option_count);

/* Compares a rows x columns tile, both arrays packed row after row. Integers must agree bit for
 * bit; floats must satisfy |got - expected| <= tolerance, which a NaN never does unless both are
 * NaN in the expected place. Prints the first five mismatches with row, column, expected, got. */
bool check_tile(const char *what, ElementType type, const void *got, const void *expected,
                long rows, long columns, double tolerance);

/* The same for a single fact; the message says what was expected and what was found. */
bool check_that(bool condition, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the verdict line from the checks so far and returns the exit code. */
int program_end(const char *what_was_checked, ...) __attribute__((format(printf, 1, 2)));

/* What is printed between these two is detail. Without the option --full, which every program takes,
 * one line says how many lines were left out. After a failed check or an error it is printed anyway. */
void detail_begin(void);
void detail_end(void);

/* Ends with this exit code, or with EXIT_FAIL if what was printed could not be written: a verdict
 * that cannot be read does not count. */
__attribute__((noreturn)) void program_exit(int code);

/* Ends the program with the line FAIL or SKIP and its exit code. */
__attribute__((noreturn, format(printf, 1, 2))) void program_fail(const char *why, ...);
__attribute__((noreturn, format(printf, 1, 2))) void program_skip(const char *why, ...);

#ifdef __cplusplus
}
#endif
#endif
