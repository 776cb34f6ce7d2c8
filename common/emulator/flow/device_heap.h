/* device_heap.h: malloc and free of the device. The heap is made when the first kernel that uses it
 * is loaded; its size can be set before. */
#ifndef EMULATOR_DEVICE_HEAP_H
#define EMULATOR_DEVICE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool device_heap_resize(size_t bytes);
size_t device_heap_size(void);
bool device_heap_prepare(void);
uint64_t device_heap_allocate(uint64_t bytes); /* 0: no room */
bool device_heap_free(uint64_t address);       /* false: no block of it begins there */

#endif
