/* record_file.h: the one file of a recording, shared by all clusters. */
#pragma once

#include "base/warp.h"
#include "record/record_clock.h"
#include "record/record_text.h"

/* The number of this instruction in the file, the same for every cluster. */
uint32_t record_place(const Instruction *in);
/* Is one of the blocks of this cluster selected? */
bool record_wants(const Cluster *cluster);
/* Reserves this many bytes of the recording's limit; false: the limit is reached. */
bool record_take(size_t bytes);
/* Keeps the events of a cluster until the launch has ended. Takes over the text, and where its events
 * are on the clock (record_clock.h; empty without EMULATOR_CLOCK). */
void record_keep(int launch_number, uint32_t cluster_number, RecordText *text, ClockPlaces *places);
