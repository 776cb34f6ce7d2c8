/* record_line.h: what the recorder keeps of a cluster, and how its files write lines. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock/clock.h"
#include "record/count.h"
#include "record/record.h"
#include "record/record_file.h"

typedef struct {
  SharedPiece *pieces;
  uint32_t count, capacity;
} PieceList;

typedef struct {
  const Instruction *last;
  LaneMask last_mask;
  LaneMask waiting; /* lanes with a recorded wait event that has not ended */
  const Instruction *waits_at[LANES];
  bool on_mbarrier; /* what the running instruction waits for, if it is blocked */
  uint32_t address, parity;
  uint64_t instructions[LANES]; /* of each thread, if they are counted */
} WarpRecord;

enum { FINDINGS_KEPT = 256 };

struct Recorder {
  bool writes_events; /* false: it only counts */
  Counters *counters; /* NULL: it does not */
  ClockTrace *clock;  /* NULL: without EMULATOR_CLOCK */
  int launch_number;
  RecordText text;
  ClockPlaces places; /* of the events; with EMULATOR_CLOCK alone */
  ClockPlace place;   /* of the next event */
  size_t charged;     /* bytes of `text` already reported to record_take */
  uint64_t time, events;
  uint32_t warps_per_block;
  uint32_t next_wgmma;
  bool stopped;
  uint8_t *mirror;
  uint32_t shared_bytes;
  WarpRecord *warps;
  PieceList *copies; /* what each copy will write; empty once it has landed */
  uint32_t copy_count, copy_capacity;
  PieceList unsettled; /* written by threads of `writer`, not yet recorded */
  const Warp *writer;
  struct {
    const Rule *rule;
    const Instruction *in;
  } findings[FINDINGS_KEPT];
  int finding_count;
};

static inline WarpRecord *warp_record(const Warp *warp) {
  return &warp->cta->cluster->recorder->warps[agent_of(warp)];
}

/* The events from here on are this warp's, or this copy's. */
void place_at_warp(Recorder *recorder, const Warp *warp);
void place_at(Recorder *recorder, ClockPlaceKind kind, uint32_t number);
/* Begins an event; false once the recording is full. */
bool begin_event(Recorder *recorder, const char *kind);
void add_number(Recorder *recorder, int64_t number);
void add_string(Recorder *recorder, const char *string);
void end_event(Recorder *recorder);
/* Most events begin alike; NULL: the recording is full. */
Recorder *begin_warp_event(const char *kind, const Warp *warp, const Instruction *in,
                           LaneMask mask);
void warp_event(const char *kind, const Warp *warp, const Instruction *in, LaneMask mask);
void add_pieces(Recorder *recorder, const SharedPiece *pieces, int count);
void record_bytes(Cluster *cluster, const char *author, SharedPiece piece);
void piece_append(PieceList *list, SharedPiece piece);
/* Merges pieces into as few as possible, in the order of addresses. */
void merge_pieces(PieceList *list);
void record_pieces(Cluster *cluster, char letter, uint32_t number, PieceList *list);
