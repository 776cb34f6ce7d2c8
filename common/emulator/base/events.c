/* events.c: who is told what happens (events.h). */
#include "base/events.h"

const Subscriber *event_subscribers[SUBSCRIBERS];
