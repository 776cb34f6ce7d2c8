/* record_clock.h: the events of a recording in the order of the clock (EMULATOR_CLOCK). */
#pragma once

#include "clock/clock.h"
#include "record/record_text.h"

/* What an event's moment on the clock depends on. */
typedef enum { AT_WARP, AT_SOURCE, AT_LANDING, AT_WGMMA, AT_END } ClockPlaceKind;
typedef struct {
  size_t line; /* where the event's line begins in the text */
  uint32_t number, kind;
  ClockMoment moment; /* AT_WARP */
} ClockPlace;
typedef struct {
  ClockPlace *places;
  uint32_t count, capacity;
} ClockPlaces;
void clock_places_add(ClockPlaces *places, ClockPlace place);

/* Sorts the events by the clock, gives them its times, and computes the states of barriers again: they
 * are counted in the order of the clock. */
void record_in_clock_order(const ClockTrace *trace, const ClockPlaces *places, RecordText *text);
