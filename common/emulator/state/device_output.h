/* device_output.h: what kernels have printed, kept until the host synchronises, as on the GPU. */
#ifndef EMULATOR_DEVICE_OUTPUT_H
#define EMULATOR_DEVICE_OUTPUT_H

#include <stddef.h>

/* Adds text, in the order in which it will appear. */
void device_output_drop(void); /* discards pending text */
void device_output_write(const char *text, size_t bytes);
/* Prints the pending text on stdout: the host has synchronised or the program ends. */
void device_output_flush(void);

#endif
