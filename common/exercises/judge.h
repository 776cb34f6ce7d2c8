/* judge.h: how an exercise to write is judged.
 *
 * The learner's file is compiled to PTX. A judge loads the PTX and launches the kernel in it. So
 * nothing but the kernel comes from the learner: data, shapes and comparison are the judge's.
 *
 *   static void judge_double(void) {
 *     int values[64], expected[64];
 *     for (int i = 0; i < 64; i++) values[i] = judge_random(), expected[i] = 2 * values[i];
 *     judge_give_pointer(judge_upload(values, sizeof values));
 *     int *got = judge_give_buffer(sizeof values);
 *     judge_launch(1, 32, "64 numbers");
 *     judge_compare(got, expected, 1, 64);
 *   }
 *   static const Exercise exercises[] = {{"double", judge_double}, {}};
 *   int main(int argc, char **argv) { return judge_main(argc, argv, exercises); }
 *
 * Usage of the program: judge EXERCISE FILE.ptx SEED */
#ifndef COMMON_JUDGE_H
#define COMMON_JUDGE_H

#include "../check.h"
#include "../tensor_map.h"

typedef struct {
  const char *name; /* of the exercise, and of its kernel; NULL ends a list */
  void (*judge)(void);
} Exercise;

int judge_main(int argc, char **argv, const Exercise *exercises);

/* The next number of the sequence that SEED determines, below 2^20 in magnitude. */
int judge_random(void);
void judge_fill(int *values, size_t count);

/* Device memory: filled with a pattern that no result has, or with `bytes` of data. */
void *judge_buffer(size_t bytes);
void *judge_upload(const void *data, size_t bytes);

/* The kernel's arguments, in their order. A kernel with more parameters finds zeros in them. */
void judge_give_map(const TensorMap *map);
/* The map of a packed matrix of 32-bit numbers. */
void judge_give_matrix(void *address, int rows, int columns, int box_rows, int box_columns);
void judge_give_pointer(void *pointer);
void *judge_give_buffer(size_t bytes); /* a new one */
void judge_give_int(int value);

/* Launches the kernel with these arguments and forgets them. `shape` names the case in messages. */
void judge_launch(unsigned blocks, unsigned threads, const char *shape, ...)
    __attribute__((format(printf, 3, 4)));

/* What the next comparison would find after a common mistake, which stays the caller's, and what is said then. */
void judge_know_mistake(const int *result, const char *text, ...)
    __attribute__((format(printf, 2, 3)));

/* Compares a result of the last launch with what is expected, element by element. */
void judge_compare(const int *device_got, const int *expected, long rows, long columns);
void judge_compare_bf16(const uint16_t *device_got, const uint16_t *expected, long rows,
                        long columns);

#endif
