/* device_output.c: keeps what kernels print until the host synchronises. */
#include "state/device_output.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
  pthread_mutex_t lock; /* of all of it */
  char *waiting;
  size_t bytes, capacity;
  bool registered; /* flush_at_exit */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};
/* with more than this, print without waiting for a synchronisation */
enum { MOST_WAITING = 64 << 20 };

static void flush_at_exit(void) { device_output_flush(); }

void device_output_write(const char *text, size_t bytes) {
  if (!bytes) return;
  pthread_mutex_lock(&all.lock);
  if (!all.registered) {
    all.registered = true;
    atexit(flush_at_exit);
  }
  if (all.bytes + bytes > all.capacity) {
    size_t capacity = (all.bytes + bytes) * 2;
    char *larger = realloc(all.waiting, capacity);
    if (!larger) { /* out of memory: print now, so that no text is lost */
      fwrite(all.waiting, 1, all.bytes, stdout);
      fwrite(text, 1, bytes, stdout);
      all.bytes = 0;
      pthread_mutex_unlock(&all.lock);
      return;
    }
    all.waiting = larger;
    all.capacity = capacity;
  }
  memcpy(all.waiting + all.bytes, text, bytes);
  all.bytes += bytes;
  bool too_much = all.bytes > MOST_WAITING;
  pthread_mutex_unlock(&all.lock);
  if (too_much) device_output_flush();
}

void device_output_before_fork(void) { pthread_mutex_lock(&all.lock); }
void device_output_after_fork(bool dropped) {
  if (dropped) all.bytes = 0;
  pthread_mutex_unlock(&all.lock);
}

void device_output_flush(void) {
  pthread_mutex_lock(&all.lock);
  if (all.bytes) {
    fwrite(all.waiting, 1, all.bytes, stdout);
    fflush(stdout);
    all.bytes = 0;
  }
  pthread_mutex_unlock(&all.lock);
}
