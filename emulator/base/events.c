/* events.c: who is told what happens (events.h). */
#include "base/events.h"

EventHandlers event_handlers[TOLD_TO_ALL + 1];

static bool is_told(SubscriberPlace place, int told) {
  if (place == RECORDER_EVENTS) return told & TOLD_TO_RECORDER;
  return place < ORDER_EVENTS || told & TOLD_TO_CHECKER;
}

/* Those of the events that the new one wants. */
static void fill_handlers(EventHandlers *handlers, int told, const Subscriber *added) {
  const Subscriber *const *all = event_handlers[TOLD_TO_ALL].subscribers;
  int count;
#define EVENT(name, parameters, arguments)             \
  count = 0;                                           \
  for (int i = 0; added->name && i < SUBSCRIBERS; i++) \
    if (all[i] && all[i]->name && is_told(i, told)) handlers->name[count++] = all[i]->name;
#include "base/events.def"
#undef EVENT
}

void events_subscribe(SubscriberPlace place, const Subscriber *subscriber) {
  event_handlers[TOLD_TO_ALL].subscribers[place] = subscriber;
  for (int told = 0; told <= TOLD_TO_ALL; told++)
    fill_handlers(&event_handlers[told], told, subscriber);
}
