/* exchange.h: lanes that give each other values: votes, shuffles, matches, reductions (flow_warp.c). */
#pragma once

#include "base/warp.h"

/* Inputs and results of the lanes of one exchange, whichever instruction each lane is at. */
typedef struct Exchange {
  LaneMask lanes, yes; /* yes: input predicates */
  LaneMask predicates; /* result predicates */
  LANE_ARRAY uint64_t a[LANES];
  LANE_ARRAY uint32_t b[LANES], c[LANES], value[LANES];
} Exchange;

typedef struct {
  const Operand *d, *p; /* results; NULL or a sink: discarded */
  const Operand *a, *b, *c;
  const Operand *members;
  void (*act)(Exchange *exchange, uint8_t kind, bool is_signed);
  uint8_t kind;
  bool is_signed, wide;
} WarpWideForm;

enum { REDUX_ADD, REDUX_MIN, REDUX_MAX, REDUX_AND, REDUX_OR, REDUX_XOR };
void act_match(Exchange *exchange, uint8_t all, bool is_signed);
void act_redux(Exchange *exchange, uint8_t kind, bool is_signed);

/* Lanes with the same member mask may be at several instructions of one kind: `if (...) x =
 * __shfl_sync(m, a, 0); else y = __shfl_sync(m, b, 0);` is one exchange. */
typedef struct {
  const Instruction *in;
  LaneMask lanes;
  uint32_t group; /* index of the warp's group; the running group comes first */
} WaitingLanes;
typedef struct Rendezvous {
  WaitingLanes parts[LANES];
  uint32_t count;
  LaneMask lanes;
} Rendezvous;
