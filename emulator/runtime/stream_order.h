/* stream_order.h: which operations of streams, graphs and the host are ordered (stream_order.c).
 *
 * Every stream has a timeline, and so has every branch of a running graph. An operation is a point
 * on a timeline, and knows of each timeline up to which point it comes later. What one stream has
 * done reaches another one through events, graph edges, the legacy stream, and the host, which
 * learns of it when it synchronises. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Operations of further timelines count as ordered with everything. */
enum { TIMELINES = 64, NO_TIMELINE = 0 };

typedef struct {
  uint32_t seen[TIMELINES];
} StreamClock;

/* One operation, from its submission on. */
typedef struct StreamStamp {
  uint32_t timeline, point;
  unsigned long long stream; /* its id */
  StreamClock clock;         /* what comes before it */
} StreamStamp;

typedef struct {
  uint32_t timeline;
  StreamClock clock; /* what comes before the stream's next operation */
} StreamOrder;

bool stream_order_wanted(void);
void stream_order_join(StreamClock *into, const StreamClock *from);
void stream_order_end_timeline(StreamOrder *order);
/* A new operation of the stream, whose clock is up to date. */
StreamStamp *stream_order_submit(StreamOrder *order, unsigned long long stream);
/* The host has waited for all this. */
void stream_order_host_learns(const StreamClock *clock);
void stream_order_host_learns_all(void);
const StreamClock *stream_order_of_host(void);
/* The host has waited for the operation that is executed. */
void stream_order_host_learns_executed(void);
/* A stream besides the legacy one has begun or ended. */
void stream_order_note_stream(bool begins, bool blocking);

/* The operation is executed now. */
void stream_order_execute(const StreamStamp *stamp);
/* The launch, copy or fill that is executed has this number. */
void stream_order_number(uint32_t operation, const char *what, const char *amount);
/* The parameters of a kernel that is launched: it may write pinned memory that they point to. */
void stream_order_parameters(const uint8_t *parameters, size_t bytes);
/* Bytes that the operation that is executed reads or writes. */
typedef struct {
  uint64_t first, bytes;
  bool writes;
} StreamTouch;
void stream_order_touch(const char *what, const char *amount, const StreamTouch *touches,
                        int count);
/* It frees these bytes. */
void stream_order_freed(uint64_t first, uint64_t bytes);
/* An asynchronous copy from or to pinned host memory has been made: the host must leave it alone
 * until it has waited. */
void stream_order_watch_host(const void *host, size_t bytes, bool written);
