/* device_output.h: what kernels have printed, kept until the host synchronises, as on the GPU. */
#ifndef EMULATOR_DEVICE_OUTPUT_H
#define EMULATOR_DEVICE_OUTPUT_H

#include <stddef.h>

/* Adds text, in the order in which it shall appear. */
void device_output_drop(void); /* what waits is not printed */
void device_output_write(const char *text, size_t bytes);
/* The host has synchronised, or the program ends: prints it on stdout. */
void device_output_flush(void);

#endif
