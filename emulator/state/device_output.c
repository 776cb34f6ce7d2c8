/* device_output.c: keeps what kernels print until the host synchronises. */
#include "state/device_output.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"

static struct {
  pthread_mutex_t lock; /* of all of it */
  char *waiting;
  size_t bytes, capacity;
  bool registered; /* flush_at_exit */
} printed = {.lock = PTHREAD_MUTEX_INITIALIZER};
/* with more than this, print without waiting for a synchronisation */
enum { MOST_WAITING = 64 << 20 };

static void flush_at_exit(void) { device_output_flush(); }

void device_output_write(const char *text, size_t bytes) {
  if (!bytes) return;
  pthread_mutex_lock(&printed.lock);
  if (!printed.registered) {
    printed.registered = true;
    atexit(flush_at_exit);
  }
  if (printed.bytes + bytes > printed.capacity) {
    size_t capacity = (printed.bytes + bytes) * 2;
    char *larger = realloc(printed.waiting, capacity);
    if (!larger) { /* out of memory: print now, so that no text is lost */
      fwrite(printed.waiting, 1, printed.bytes, stdout);
      fwrite(text, 1, bytes, stdout);
      printed.bytes = 0;
      pthread_mutex_unlock(&printed.lock);
      return;
    }
    printed.waiting = larger;
    printed.capacity = capacity;
  }
  memcpy(printed.waiting + printed.bytes, text, bytes);
  printed.bytes += bytes;
  bool too_much = printed.bytes > MOST_WAITING;
  pthread_mutex_unlock(&printed.lock);
  if (too_much) device_output_flush();
}

void device_output_before_fork(void) { pthread_mutex_lock(&printed.lock); }
void device_output_after_fork(bool dropped) {
  if (dropped) printed.bytes = 0;
  pthread_mutex_unlock(&printed.lock);
}

void device_output_flush(void) {
  HOLD_LOCK(&printed.lock);
  if (printed.bytes) {
    fwrite(printed.waiting, 1, printed.bytes, stdout);
    fflush(stdout);
    printed.bytes = 0;
  }
}
