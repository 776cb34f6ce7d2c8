/* device_output.c: keeps what kernels print until the host synchronises. */
#include "state/device_output.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *waiting;
static size_t waiting_bytes, waiting_capacity;
/* with more than this, print without waiting for a synchronisation */
enum { MOST_WAITING = 64 << 20 };

static void flush_at_exit(void) { device_output_flush(); }

void device_output_write(const char *text, size_t bytes) {
  static bool registered;
  if (!bytes) return;
  pthread_mutex_lock(&lock);
  if (!registered) {
    registered = true;
    atexit(flush_at_exit);
  }
  if (waiting_bytes + bytes > waiting_capacity) {
    size_t capacity = (waiting_bytes + bytes) * 2;
    char *larger = realloc(waiting, capacity);
    if (!larger) { /* out of memory: print now, so that no text is lost */
      fwrite(waiting, 1, waiting_bytes, stdout);
      fwrite(text, 1, bytes, stdout);
      waiting_bytes = 0;
      pthread_mutex_unlock(&lock);
      return;
    }
    waiting = larger;
    waiting_capacity = capacity;
  }
  memcpy(waiting + waiting_bytes, text, bytes);
  waiting_bytes += bytes;
  bool too_much = waiting_bytes > MOST_WAITING;
  pthread_mutex_unlock(&lock);
  if (too_much) device_output_flush();
}

void device_output_before_fork(void) { pthread_mutex_lock(&lock); }
void device_output_after_fork(bool dropped) {
  if (dropped) waiting_bytes = 0;
  pthread_mutex_unlock(&lock);
}

void device_output_flush(void) {
  pthread_mutex_lock(&lock);
  if (waiting_bytes) {
    fwrite(waiting, 1, waiting_bytes, stdout);
    fflush(stdout);
    waiting_bytes = 0;
  }
  pthread_mutex_unlock(&lock);
}
