/* fingerprint.h: a number that differs when bytes differ. */
#ifndef EMULATOR_FINGERPRINT_H
#define EMULATOR_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

/* Of these bytes after those that gave `before`. Two different contents have the same fingerprint by
 * accident once in 2^64 times. */
uint64_t fingerprint(uint64_t before, const void *bytes, size_t count);

#endif
