/* propagate.c: tracks uninitialised values through registers.
 *
 * Reading uninitialised memory is not a mistake if the value is dropped, so a load only marks the
 * bits it loads as undefined. Each later instruction of the warp propagates the marks, as exactly
 * as is cheap: a select, a shuffle or an `and` with zeros leaves defined what does not depend on
 * undefined bits. A report is due when such a value matters: it decides a branch, is an address, or
 * goes to global memory (undefined_memory.c).
 *
 * Most rules follow from one trick: execute the instruction once with its sources and once with
 * their undefined bits flipped. Result bits that differ are undefined.
 *
 * A warp without marks has no overhead: WATCH_UNDEFINED is set only while it has some. Matrices are
 * followed by tensor_core/undefined_matrices.c. A wgmma marks its results when it is issued: what reads or
 * writes them lands it first. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "arithmetic/alu.h"
#include "base/holds.h"
#include "base/traits.h"
#include "checker/undefined/marks.h"

enum { SOURCES = 12, DESTINATIONS = 8, COLUMN_BYTES = LANES * 16 };

/* ---- Marks ---- */

/* Registers are stored in columns of 4, 8 or 16 bytes per lane. */
static uint32_t column_bytes(const Operand *operand) {
  return operand->bytes <= 4 ? 4 : operand->bytes;
}

static bool is_register(const Operand *operand) {
  return (operand->kind == OPERAND_REGISTER || operand->kind == OPERAND_ADDRESS) &&
         !operand->constant;
}

static LaneMask undefined_lanes(const struct WarpUndefined *table, const Operand *operand) {
  if (operand->kind == OPERAND_PREDICATE) return table->predicate_lanes[operand->slot];
  return is_register(operand) ? table->lanes[operand->slot] : 0;
}

static OriginNumber origin_of_operand(const struct WarpUndefined *table, const Operand *operand,
                                      int lane) {
  uint32_t at = operand->slot * (uint32_t)LANES + (uint32_t)lane;
  return operand->kind == OPERAND_PREDICATE ? table->predicate_origins[at] : table->origins[at];
}

/* ---- Operands ---- */

typedef struct {
  Warp *warp;
  const Instruction *in;
  struct WarpUndefined *table;
  LaneMask mask;
  const Operand *sources[SOURCES], *destinations[DESTINATIONS];
  int source_count, destination_count;
} FlowStep;

static void add_operand(const Operand *operand, const Operand **list, int *count, int most) {
  if (operand->kind == OPERAND_VECTOR) {
    for (uint32_t i = 0; i < operand->count; i++)
      add_operand(&operand->elements[i], list, count, most);
  } else if (*count < most && (operand->kind == OPERAND_PREDICATE || is_register(operand) ||
                               operand->kind == OPERAND_REGISTER)) {
    list[(*count)++] = operand;
  }
}

static FlowStep flow_step_of(Warp *warp, const Instruction *in, LaneMask mask) {
  FlowStep flow_step = {.warp = warp, .in = in, .table = warp->undefined, .mask = mask};
  for (int i = 0; i < in->operand_count; i++) {
    if (i < in->results)
      add_operand(&in->operand[i], flow_step.destinations, &flow_step.destination_count,
                  DESTINATIONS);
    else
      add_operand(&in->operand[i], flow_step.sources, &flow_step.source_count, SOURCES);
  }
  return flow_step;
}

static LaneMask undefined_carry(const FlowStep *flow_step) {
  return flow_step->in->reads_carry ? flow_step->table->carry_lanes & flow_step->mask : 0;
}

static LaneMask undefined_sources(const FlowStep *flow_step, int first, int end) {
  LaneMask lanes = undefined_carry(flow_step);
  for (int i = first; i < end && i < flow_step->source_count; i++)
    lanes |= undefined_lanes(flow_step->table, flow_step->sources[i]);
  return lanes;
}

/* The origin of the first source that is undefined in this lane. */
static OriginNumber origin_for(const FlowStep *flow_step, int lane) {
  for (int i = 0; i < flow_step->source_count; i++) {
    const Operand *source = flow_step->sources[i];
    LaneMask lanes = undefined_lanes(flow_step->table, source) & flow_step->mask;
    if (lanes >> lane & 1) return origin_of_operand(flow_step->table, source, lane);
  }
  return undefined_carry(flow_step) >> lane & 1 ? flow_step->table->carry_origins[lane] : 0;
}

/* ---- Execution to see what depends on what ---- */

typedef struct {
  uint8_t columns[SOURCES + DESTINATIONS][COLUMN_BYTES];
  LaneMask predicates[SOURCES + DESTINATIONS];
} SavedColumns;

static uint8_t *column_at(const Warp *warp, const Operand *operand) {
  return warp->registers + (size_t)operand->slot * SLOT_BYTES;
}

static const Operand *operand_at(const FlowStep *flow_step, int i) {
  return i < flow_step->source_count ? flow_step->sources[i]
                                     : flow_step->destinations[i - flow_step->source_count];
}

static void save_columns(const FlowStep *flow_step, SavedColumns *saved, bool restore) {
  Warp *warp = flow_step->warp;
  for (int i = 0; i < flow_step->source_count + flow_step->destination_count; i++) {
    const Operand *operand = operand_at(flow_step, i);
    if (operand->kind == OPERAND_PREDICATE) {
      if (restore)
        warp->predicates[operand->slot] = saved->predicates[i];
      else
        saved->predicates[i] = warp->predicates[operand->slot];
    } else if (is_register(operand)) {
      uint8_t *column = column_at(warp, operand);
      size_t bytes = column_bytes(operand) * (size_t)LANES;
      if (restore)
        memcpy(column, saved->columns[i], bytes);
      else
        memcpy(saved->columns[i], column, bytes);
    }
  }
}

static void flip_undefined(const FlowStep *flow_step, const Operand *source) {
  Warp *warp = flow_step->warp;
  if (source->kind == OPERAND_PREDICATE) {
    warp->predicates[source->slot] ^= flow_step->table->predicate_lanes[source->slot];
  } else if (is_register(source)) {
    uint8_t *column = column_at(warp, source);
    const uint8_t *bits = flow_step->table->bits + (size_t)source->slot * SLOT_BYTES;
    for (uint32_t i = 0; i < column_bytes(source) * LANES; i++) column[i] ^= bits[i];
  }
}

/* The results of several executions: the first, and the bits in which later ones differed. */
typedef struct {
  SavedColumns first, differing;
  bool any;
} TrialResults;

static void run_once(const FlowStep *flow_step, TrialResults *results) {
  flow_step->in->execute(flow_step->warp, flow_step->in, flow_step->mask);
  for (int i = 0; i < flow_step->destination_count; i++) {
    const Operand *destination = flow_step->destinations[i];
    if (destination->kind == OPERAND_PREDICATE) {
      LaneMask now = flow_step->warp->predicates[destination->slot];
      if (!results->any) results->first.predicates[i] = now;
      results->differing.predicates[i] |= now ^ results->first.predicates[i];
    } else if (is_register(destination)) {
      const uint8_t *now = column_at(flow_step->warp, destination);
      uint8_t *first = results->first.columns[i], *differing = results->differing.columns[i];
      size_t bytes = column_bytes(destination) * (size_t)LANES;
      if (!results->any) memcpy(first, now, bytes);
      for (size_t k = 0; k < bytes; k++) differing[k] |= now[k] ^ first[k];
    }
  }
  results->any = true;
}

static void mark_results(const FlowStep *flow_step, const TrialResults *results,
                         OriginNumber computed) {
  FOR_LANES(lane, flow_step->mask) {
    OriginNumber origin = origin_for(flow_step, lane);
    if (origin) origin |= computed;
    for (int i = 0; i < flow_step->destination_count; i++) {
      const Operand *to = flow_step->destinations[i];
      uint32_t bytes = column_bytes(to);
      if (to->kind == OPERAND_PREDICATE)
        undefined_set_predicate(flow_step->table, to->slot, lane,
                                results->differing.predicates[i] >> lane & 1, origin);
      else if (is_register(to))
        undefined_set(flow_step->table, to->slot, bytes, lane,
                      results->differing.columns[i] + (size_t)lane * bytes, origin);
    }
  }
}

/* Flips the undefined bits of the first `data` sources: of all together, or of each subset. */
static void pass_by_flipping(const FlowStep *flow_step, int data, bool each_choice) {
  SavedColumns saved;
  TrialResults *results = new_zeros(1, sizeof *results);
  if (data > flow_step->source_count) data = flow_step->source_count;
  unsigned choices = 1u << data, step = each_choice ? 1 : choices - 1;
  save_columns(flow_step, &saved, false);
  for (unsigned choice = 0; choice < choices; choice += step) {
    for (int i = 0; i < data; i++) {
      bool twice = false; /* a register that is used as two sources is flipped once */
      for (int k = 0; k < i; k++)
        twice |= (choice >> k & 1) && flow_step->sources[k]->slot == flow_step->sources[i]->slot &&
                 flow_step->sources[k]->kind == flow_step->sources[i]->kind;
      if ((choice >> i & 1) && !twice) flip_undefined(flow_step, flow_step->sources[i]);
    }
    run_once(flow_step, results);
    save_columns(flow_step, &saved, true);
  }
  mark_results(flow_step, results, 0);
  free(results);
}

/* A comparison: tries, for each undefined source, the values of its undefined bits that compare differently with the
 * other source if any do: the other's, the least and the largest number with and without a sign, and if they
 * are floats, NaN, both infinities and the largest finite numbers. */
enum { OTHERS_BITS = 4, INTEGER_PATTERNS = 5, FLOAT_PATTERNS = 9 };
static uint64_t pattern_bits(uint64_t exponent, uint64_t sign, uint64_t undefined,
                             unsigned pattern) {
  uint64_t low = undefined & exponent; /* the lowest undefined bit of the exponent, or of both */
  uint64_t upper = exponent & 0xffffu && exponent >> 16 ? low & 0xffff0000u : 0;
  low = (upper & -upper) | ((low ^ upper) & -(low ^ upper));
  const uint64_t patterns[FLOAT_PATTERNS] = {0,        UINT64_MAX,      sign,         ~sign, 0,
                                             exponent, exponent | sign, ~sign & ~low, ~low};
  return patterns[pattern];
}

static void vary_undefined(const FlowStep *flow_step, const Operand *source, const Operand *other,
                           unsigned pattern) {
  const struct WarpUndefined *table = flow_step->table;
  const uint64_t exponent = flow_step->in->exponent_bits;
  uint32_t bytes = column_bytes(source);
  const uint64_t sign = exponent ? (exponent << 1) & ~exponent : 1ull << (8 * source->bytes - 1);
  FOR_LANES(lane, undefined_lanes(table, source)) {
    size_t at = (size_t)lane * bytes;
    uint8_t *place = column_at(flow_step->warp, source) + at;
    uint64_t value = 0, bits = 0, chosen = 0;
    memcpy(&value, place, bytes);
    memcpy(&bits, table->bits + (size_t)source->slot * SLOT_BYTES + at, bytes);
    if (pattern != OTHERS_BITS)
      chosen = pattern_bits(exponent, sign, bits, pattern);
    else if (other->constant)
      chosen = other->constant_value;
    else if (is_register(other))
      memcpy(&chosen, column_at(flow_step->warp, other) + at, bytes);
    value = (value & ~bits) | (chosen & bits);
    memcpy(place, &value, bytes);
  }
}

static void pass_by_varying(const FlowStep *flow_step) {
  if (flow_step->source_count < 2) return;
  const Operand *a = flow_step->sources[0], *b = flow_step->sources[1];
  const Operand *with = flow_step->source_count > 2 ? flow_step->sources[2] : NULL;
  const unsigned patterns = flow_step->in->exponent_bits ? FLOAT_PATTERNS : INTEGER_PATTERNS;
  unsigned of_a = undefined_lanes(flow_step->table, a) ? patterns : 1;
  unsigned of_b = undefined_lanes(flow_step->table, b) ? patterns : 1;
  unsigned of_with = with && undefined_lanes(flow_step->table, with) ? 2 : 1;
  SavedColumns saved;
  TrialResults *results = new_zeros(1, sizeof *results);
  save_columns(flow_step, &saved, false);
  for (unsigned i = 0; i < of_a * of_b * of_with; i++) {
    if (of_a > 1) vary_undefined(flow_step, a, b, i % of_a);
    if (of_b > 1) vary_undefined(flow_step, b, a, i / of_a % of_b);
    if (i >= of_a * of_b) flip_undefined(flow_step, with);
    run_once(flow_step, results);
    save_columns(flow_step, &saved, true);
  }
  mark_results(flow_step, results, ORIGIN_COMPUTED);
  free(results);
}

/* ---- Without execution ---- */

static uint64_t bits_of(const FlowStep *flow_step, const Operand *source, int lane) {
  uint64_t bits = 0;
  if (source->kind == OPERAND_PREDICATE)
    return flow_step->table->predicate_lanes[source->slot] >> lane & 1 ? UINT64_MAX : 0;
  if (!is_register(source) || !(flow_step->table->lanes[source->slot] >> lane & 1)) return 0;
  uint32_t bytes = column_bytes(source);
  const uint8_t *from = flow_step->table->bits + (size_t)source->slot * SLOT_BYTES;
  memcpy(&bits, from + (size_t)lane * bytes, bytes < 8 ? bytes : 8);
  return bytes == 16 ? UINT64_MAX : bits;
}

typedef enum { SPREAD_ALL, SPREAD_HALVES, SPREAD_UPWARD } SpreadBits;

static uint64_t spread_bits(uint64_t bits, SpreadBits spread) {
  if (bits == 0) return 0;
  if (spread == SPREAD_UPWARD) return bits | (0 - bits);
  if (spread == SPREAD_HALVES)
    return (bits & 0xffffu ? 0xffffu : 0) | (bits & 0xffff0000u ? 0xffff0000u : 0);
  return UINT64_MAX;
}

/* The marks of a warp's 32-bit numbers. */
typedef struct {
  LANE_ARRAY uint32_t bits[LANES];
  OriginNumber origins[LANES]; /* of the first source that is undefined */
} MarkedWords;

/* False: a source is of another size. */
static bool take_words(const FlowStep *flow_step, MarkedWords *words) {
  const struct WarpUndefined *table = flow_step->table;
  memset(words, 0, sizeof *words);
  for (int i = flow_step->source_count - 1; i >= 0; i--) {
    const Operand *source = flow_step->sources[i];
    LaneMask lanes = undefined_lanes(table, source) & flow_step->mask;
    if (!lanes) continue;
    if (!is_register(source) || column_bytes(source) != sizeof *words->bits) return false;
    const uint32_t *bits =
        (const uint32_t *)(const void *)(table->bits + (size_t)source->slot * SLOT_BYTES);
    const OriginNumber *origins = table->origins + source->slot * LANES;
    for (int lane = 0; lane < LANES; lane++) {
      bool marked = lanes >> lane & 1;
      words->bits[lane] |= marked ? bits[lane] : 0;
      words->origins[lane] = marked ? origins[lane] : words->origins[lane];
    }
  }
  return true;
}

static void set_words(struct WarpUndefined *table, uint32_t slot, LaneMask mask,
                      const MarkedWords *words) {
  uint32_t *bits = (uint32_t *)(void *)(table->bits + (size_t)slot * SLOT_BYTES);
  OriginNumber *origins = table->origins + slot * LANES;
  LaneMask before = table->lanes[slot], marked = 0;
  for (int lane = 0; lane < LANES; lane++) {
    bool set = mask >> lane & 1;
    bits[lane] = set ? words->bits[lane] : bits[lane];
    origins[lane] = set ? words->origins[lane] : origins[lane];
  }
  for (int lane = 0; lane < LANES; lane++) marked |= (LaneMask)(words->bits[lane] != 0) << lane;
  table->lanes[slot] = (before & ~mask) | (marked & mask);
  if (!before && table->lanes[slot]) table->marked++;
  if (before && !table->lanes[slot]) table->marked--;
}

/* Nearly always: all lanes at once. False: look at each lane. */
static bool pass_words_by_rule(const FlowStep *flow_step, SpreadBits spread) {
  const Operand *to = flow_step->destinations[0];
  MarkedWords words;
  if (flow_step->destination_count != 1 || !is_register(to) || to->bytes != sizeof *words.bits ||
      flow_step->in->reads_carry || flow_step->in->writes_carry || spread == SPREAD_HALVES ||
      !take_words(flow_step, &words))
    return false;
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t bits = words.bits[lane], any = bits ? UINT32_MAX : 0;
    words.bits[lane] = spread == SPREAD_UPWARD ? bits | (0 - bits) : any;
    words.origins[lane] |= (OriginNumber)(any & ORIGIN_COMPUTED);
  }
  set_words(flow_step->table, to->slot, flow_step->mask, &words);
  return true;
}

static void pass_by_rule(const FlowStep *flow_step, SpreadBits spread) {
  if (pass_words_by_rule(flow_step, spread)) return;
  FOR_LANES(lane, flow_step->mask) {
    uint64_t bits = undefined_carry(flow_step) >> lane & 1;
    for (int i = 0; i < flow_step->source_count; i++)
      bits |= bits_of(flow_step, flow_step->sources[i], lane);
    OriginNumber origin = bits ? origin_for(flow_step, lane) | ORIGIN_COMPUTED : 0;
    bits = spread_bits(bits, spread);
    if (flow_step->in->writes_carry) undefined_set_carry(flow_step->table, lane, bits != 0, origin);
    for (int i = 0; i < flow_step->destination_count; i++) {
      const Operand *to = flow_step->destinations[i];
      uint64_t value_bits[2] = {to->bytes < 8 ? bits & ((1ull << 8 * to->bytes) - 1) : bits, bits};
      if (to->kind == OPERAND_PREDICATE)
        undefined_set_predicate(flow_step->table, to->slot, lane, bits != 0, origin);
      else if (is_register(to))
        undefined_set(flow_step->table, to->slot, column_bytes(to), lane, (uint8_t *)value_bits,
                      origin);
    }
  }
}

static void make_defined(const FlowStep *flow_step) {
  static const uint8_t NONE[16];
  if (flow_step->destination_count == 1 && is_register(flow_step->destinations[0]) &&
      !flow_step->in->writes_carry) {
    const Operand *to = flow_step->destinations[0];
    if (!(flow_step->table->lanes[to->slot] & ~flow_step->mask)) {
      undefined_set_column(flow_step->table, to->slot, column_bytes(to), false, 0);
      return;
    }
  }
  FOR_LANES(lane, flow_step->mask) {
    if (flow_step->in->writes_carry) undefined_set_carry(flow_step->table, lane, false, 0);
    for (int i = 0; i < flow_step->destination_count; i++) {
      const Operand *to = flow_step->destinations[i];
      if (to->kind == OPERAND_PREDICATE)
        undefined_set_predicate(flow_step->table, to->slot, lane, false, 0);
      else if (is_register(to))
        undefined_set(flow_step->table, to->slot, column_bytes(to), lane, NONE, 0);
    }
  }
}

/* ---- lop3 with a predicate ---- */

/* What d|p is made of undefined bits. A bit of d may be 1 if some row of the table that fits the bits
 * of a, b and c says 1; p may be what "d is not 0" and q may be. */
static void pass_lop3(Warp *warp, const Instruction *in, LaneMask mask) {
  const Lop3 *lop3 = in->decoded;
  const Operand *d = &in->operand[0];
  const uint16_t slots[3] = {lop3->a, lop3->b, lop3->c};
  UndefinedColumn marks[3], with = {0};
  for (int k = 0; k < 3; k++) marks[k] = undefined_column(warp, slots[k], false);
  if (lop3->with->kind == OPERAND_PREDICATE) with = undefined_column(warp, lop3->with->slot, true);
  const LaneMask with_values = predicate_lanes(warp, lop3->with);
  uint32_t bits[LANES] = {0};
  OriginNumber origins[LANES] = {0}, computed[LANES] = {0};
  LaneMask undefined = 0;
  FOR_LANES(lane, mask) {
    const LaneMask own = 1u << lane;
    OriginNumber origin = with.lanes & own ? with.origins[lane] : 0;
    uint32_t may_be[2] = {0, 0};
    for (uint32_t row = 0; row < 8; row++) {
      uint32_t fits = ~0u;
      for (int k = 2; k >= 0; k--) {
        const uint32_t free = marks[k].lanes & own ? ((const uint32_t *)marks[k].bits)[lane] : 0;
        const uint32_t digit = row >> (2 - k) & 1;
        fits &=
            free | (digit ? column_u32(warp, slots[k])[lane] : ~column_u32(warp, slots[k])[lane]);
        for (int i = 0; i < k; i++) /* one register has one value */
          if (slots[i] == slots[k] && (row >> (2 - i) & 1) != digit) fits = 0;
        if (marks[k].lanes & own) origin = marks[k].origins[lane];
      }
      may_be[lop3->table >> row & 1] |= fits;
    }
    const bool zero = may_be[0] == ~0u, other = may_be[1] != 0;
    const bool no = !(with_values & own) || (with.lanes & own);
    const bool yes = (with_values & own) || (with.lanes & own);
    bits[lane] = may_be[0] & may_be[1];
    if (lop3->either ? (other || yes) && zero && no : other && yes && (zero || no))
      undefined |= own;
    origins[lane] = origin;
    computed[lane] = origin | ORIGIN_COMPUTED;
  }
  if (d->kind == OPERAND_REGISTER) undefined_mark(warp, d->slot, 4, mask, bits, origins);
  if (lop3->second->kind == OPERAND_PREDICATE)
    undefined_mark(warp, lop3->second->slot, 0, mask, &undefined, computed);
}

/* ---- Instructions ---- */

static void pass_undefined(const FlowStep *flow_step) {
  const Instruction *in = flow_step->in;
  int count = flow_step->source_count;
  LaneMask undefined = undefined_sources(flow_step, 0, count) & flow_step->mask;
  uint32_t flow = in->traits & FLOW;
  SpreadBits spread = in->packs_halves ? SPREAD_HALVES : SPREAD_ALL;
  int data = flow == FLOW_SHIFT_TWO ? 2 : flow == FLOW_SHIFT_ONE ? 1 : count;
  bool may_flip = flow == FLOW_BITWISE || flow == FLOW_SHIFT_ONE || flow == FLOW_SHIFT_TWO ||
                  (flow == FLOW_COPY && !in->mixes_bits) ||
                  (flow == FLOW_COPY && (in->traits & MOVES));
  if (!undefined || flow == FLOW_DEFINED || flow == FLOW_MEMORY)
    make_defined(flow_step);
  else if (flow == FLOW_COMPARE)
    pass_by_varying(flow_step);
  else if (may_flip && !(undefined_sources(flow_step, data, count) & flow_step->mask))
    pass_by_flipping(flow_step, data, flow == FLOW_BITWISE);
  else
    pass_by_rule(flow_step, flow == FLOW_UPWARD && !in->mixes_bits ? SPREAD_UPWARD : spread);
}

static void look_at_addresses(Warp *warp, const Instruction *in, LaneMask mask) {
  for (int i = 0; i < in->operand_count; i++) {
    const Operand *operand = &in->operand[i];
    if (operand->kind != OPERAND_ADDRESS) continue;
    LaneMask lanes = undefined_lanes(warp->undefined, operand) & mask;
    if (lanes)
      undefined_matters(warp, in, first_lane(lanes),
                        origin_of_operand(warp->undefined, operand, first_lane(lanes)),
                        USED_AS_ADDRESS);
  }
}

static void look_at_guard(Warp *warp, const Instruction *in, LaneMask group) {
  const struct WarpUndefined *table = warp->undefined;
  LaneMask lanes = table->predicate_lanes[in->guard] & group;
  if (!lanes) return;
  int lane = first_lane(lanes);
  undefined_matters(warp, in, lane, table->predicate_origins[in->guard * LANES + lane],
                    in->traits & JUMPS ? USED_BY_BRANCH : USED_BY_GUARD);
}

/* A number among the operands decides what this instruction does. */
static void look_at_decisive(Warp *warp, const Instruction *in, LaneMask mask) {
  const struct WarpUndefined *table = warp->undefined;
  bool matrix = (in->traits & FLOW) == FLOW_MATRIX; /* its vectors are matrices */
  for (int i = in->results; i < in->operand_count; i++) {
    const Operand *operand = &in->operand[i], *list[SOURCES];
    int count = 0;
    if (operand->kind == OPERAND_ADDRESS || (matrix && operand->kind == OPERAND_VECTOR)) continue;
    add_operand(operand, list, &count, SOURCES);
    for (int k = 0; k < count; k++) {
      LaneMask lanes = undefined_lanes(table, list[k]) & mask;
      if (!lanes) continue;
      OriginNumber origin = origin_of_operand(table, list[k], first_lane(lanes));
      /* a vote of a barrier may be dropped, but not a count, a size or an address */
      undefined_matters(warp, in, first_lane(lanes), origin,
                        list[k]->kind == OPERAND_PREDICATE ? USED_IN_VOTE : USED_BY_INSTRUCTION);
    }
  }
}

/* The mask of lanes is the last operand. */
static void look_at_lane_mask(Warp *warp, const Instruction *in, LaneMask mask) {
  if (!in->operand_count) return;
  const Operand *operand = &in->operand[in->operand_count - 1];
  LaneMask lanes = undefined_lanes(warp->undefined, operand) & mask;
  if (lanes && operand->kind == OPERAND_REGISTER)
    undefined_matters(warp, in, first_lane(lanes),
                      origin_of_operand(warp->undefined, operand, first_lane(lanes)),
                      USED_AS_LANE_MASK);
}

/* Has it anything to do with marked registers? Most instructions have not. */
static bool meets_marks(const struct WarpUndefined *table, const Operand *operands,
                        uint32_t count) {
  LaneMask lanes = 0;
  for (uint32_t i = 0; i < count; i++) {
    const Operand *operand = &operands[i];
    if (operand->kind != OPERAND_VECTOR)
      lanes |= undefined_lanes(table, operand);
    else if (meets_marks(table, operand->elements, operand->count))
      return true;
  }
  return lanes != 0;
}

static inline bool marks_hold(const struct WarpUndefined *table) {
  uint32_t marked = table->carry_lanes != 0;
  for (uint32_t i = 0; i < table->slots; i++) marked += table->lanes[i] != 0;
  for (uint32_t i = 0; i < table->predicates; i++) marked += table->predicate_lanes[i] != 0;
  return marked == table->marked;
}

void check_undefined(Warp *warp, const Instruction *in, LaneMask guarded, LaneMask mask) {
  const struct WarpUndefined *table = warp->undefined;
  if (!table || table->marked == 0) {
    warp->watched &= (uint8_t)~WATCH_UNDEFINED;
    return;
  }
  HOLDS_DEARLY(marks_hold(table));
  if (guarded) look_at_guard(warp, in, guarded);
  const bool carry = (in->reads_carry || in->writes_carry) && table->carry_lanes;
  if (!mask || !(carry || meets_marks(table, in->operand, in->operand_count))) return;
  if (in->has_address) look_at_addresses(warp, in, mask);
  if (in->traits & OPERANDS_DECIDE) look_at_decisive(warp, in, mask);
  if (in->traits & WARP_WIDE) {
    look_at_lane_mask(warp, in, mask);
    return; /* flow_warp.c: the rest once the lanes have met */
  }
  if ((in->traits & FLOW) == FLOW_MATRIX) return;
  if ((in->traits & FLOW) == FLOW_OWN) {
    pass_lop3(warp, in, mask);
    return;
  }
  FlowStep flow_step = flow_step_of(warp, in, mask);
  if (in->traits & JUMPS_BY_LIST) {
    LaneMask lanes = undefined_sources(&flow_step, 0, 1) & mask;
    if (lanes)
      undefined_matters(warp, in, first_lane(lanes), origin_for(&flow_step, first_lane(lanes)),
                        USED_BY_BRANCH);
  }
  if (flow_step.destination_count) pass_undefined(&flow_step);
}
