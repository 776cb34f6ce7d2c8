/* lock.h: a lock that is held until the end of the block in which it was taken. */
#pragma once

#include <pthread.h>

static inline void lock_release(pthread_mutex_t *const *lock) { pthread_mutex_unlock(*lock); }
#define HOLD_LOCK(lock)                                                                     \
  pthread_mutex_t *const held_lock __attribute__((cleanup(lock_release), unused)) = (lock); \
  pthread_mutex_lock(held_lock)
