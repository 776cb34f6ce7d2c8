/* events.c: who is told what happens (events.h). */
#include "base/events.h"

EventHandlers event_handlers;

void events_subscribe(SubscriberPlace place, const Subscriber *subscriber) {
  const Subscriber **all = event_handlers.subscribers;
  all[place] = subscriber;
  int count;
#define EVENT(name, parameters, arguments) \
  count = 0;                               \
  for (int i = 0; i < SUBSCRIBERS; i++)    \
    if (all[i] && all[i]->name) event_handlers.name[count++] = all[i]->name;
#include "base/events.def"
#undef EVENT
}
