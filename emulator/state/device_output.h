/* device_output.h: what kernels have printed, kept until the host synchronises, as on the GPU. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* No thread is at the text while the process forks: in the child that thread would be gone. The child
 * drops what its parent will print. */
void device_output_before_fork(void);
void device_output_after_fork(bool dropped);
/* Adds text, in the order in which it will appear. */
void device_output_write(const char *text, size_t bytes);
/* Prints the pending text on stdout: the host has synchronised or the program ends. */
void device_output_flush(void);
