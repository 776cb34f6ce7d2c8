/* undefined_exchange.c: undefined bits in what the lanes of a warp give each other, before they get it. */
#include "checker/undefined/undefined.h"
#include "flow/exchange.h"

/* Adds the undefined bits of a source, or of a predicate to `yes`. Returns the first one's origin; 0: all are
 * defined. */
static OriginNumber add_undefined(const Warp *warp, const Operand *source, LaneMask lanes,
                                  uint64_t *bits, LaneMask *yes) {
  if (!source || source->constant) return 0;
  const bool predicate = source->kind == OPERAND_PREDICATE;
  if (!predicate && source->kind != OPERAND_REGISTER) return 0;
  const UndefinedColumn marks = undefined_column(warp, source->slot, predicate);
  lanes &= marks.lanes;
  if (predicate) *yes |= lanes;
  FOR_LANES(lane, predicate ? 0 : lanes) {
    bits[lane] = source->bytes == 8 ? ((const uint64_t *)marks.bits)[lane]
                                    : ((const uint32_t *)marks.bits)[lane];
  }
  return lanes ? marks.origins[first_lane(lanes)] : 0;
}

static void mark_results(Warp *warp, const WarpWideForm *form, LaneMask lanes, const uint64_t *bits,
                         LaneMask yes, OriginNumber origin) {
  const bool is_wide = form->d && form->d->bytes == 8;
  uint32_t narrow[LANES];
  OriginNumber origins[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    narrow[lane] = (uint32_t)bits[lane];
    origins[lane] = origin;
  }
  if (form->d && form->d->kind == OPERAND_REGISTER)
    undefined_mark(warp, form->d->slot, is_wide ? 8 : 4, lanes,
                   is_wide ? (const void *)bits : narrow, origins);
  if (form->p && form->p->kind == OPERAND_PREDICATE)
    undefined_mark(warp, form->p->slot, 0, lanes, &yes, origins);
}

/* The undefined bits of an exchange's inputs, and what their values can change. */
typedef struct {
  const WarpWideForm *form;
  const Exchange *exchange;
  uint64_t bits[LANES];
  LaneMask yes;
  uint64_t changed[LANES];
  LaneMask predicates_changed;
} UndefinedExchange;

/* Another exchange, in which the undefined bits of these lanes are as in `value`, or the opposite of what they
 * are. */
static void exchange_again(UndefinedExchange *undefined, LaneMask lanes, uint64_t value,
                           bool opposite) {
  Exchange again = *undefined->exchange;
  LaneMask yes = opposite ? ~again.yes : value & 1 ? again.lanes : 0;
  again.yes = (again.yes & ~(undefined->yes & lanes)) | (yes & undefined->yes & lanes);
  FOR_LANES(lane, lanes) {
    const uint64_t bits = undefined->bits[lane], own = again.a[lane];
    again.a[lane] = (own & ~bits) | ((opposite ? ~own : value) & bits);
  }
  undefined->form->act(&again, undefined->form->kind, undefined->form->is_signed);
  undefined->predicates_changed |= again.predicates ^ undefined->exchange->predicates;
  for (int lane = 0; lane < LANES; lane++)
    undefined->changed[lane] |= again.value[lane] ^ undefined->exchange->value[lane];
}

/* Two lanes may or may not match where their defined bits are the same. */
static void match_undefined(UndefinedExchange *undefined) {
  const Exchange *exchange = undefined->exchange;
  bool all = undefined->form->kind, any = false, never = false;
  FOR_LANES(i, exchange->lanes)
    FOR_LANES(k, exchange->lanes) {
      const uint64_t bits = undefined->bits[i] | undefined->bits[k];
      const bool differ = (exchange->a[i] ^ exchange->a[k]) & ~bits;
      never |= differ;
      if (i == k || !bits || differ) continue;
      any = true;
      if (!all) undefined->changed[i] |= 1u << k;
    }
  if (!all || !any || never) return;
  undefined->predicates_changed = ~0u;
  for (int lane = 0; lane < LANES; lane++) undefined->changed[lane] = exchange->lanes;
}

/* A sum's bits depend on all below them; of a minimum or a maximum, all do, once one changes. */
static void spread_redux(UndefinedExchange *undefined) {
  uint64_t bits = 0, changed = 0;
  FOR_LANES(lane, undefined->exchange->lanes) bits |= undefined->bits[lane];
  if (undefined->form->kind == REDUX_ADD) changed = bits | (0 - bits);
  if (undefined->form->kind == REDUX_MIN || undefined->form->kind == REDUX_MAX)
    changed = undefined->changed[first_lane(undefined->exchange->lanes)] ? UINT32_MAX : 0;
  for (int lane = 0; lane < LANES; lane++) undefined->changed[lane] |= changed;
}

/* Result bits are undefined where other values of undefined bits change them: all of them 0 or 1, the least and the
 * largest signed number, and the opposite in all lanes or in one. */
void undefined_exchange(Warp *warp, const Rendezvous *rendezvous, const Exchange *exchange) {
  if (!(warp->watched & WATCH_UNDEFINED)) return;
  static const uint64_t VALUES[] = {0, UINT64_MAX, 0x80000000u, 0x7fffffffu};
  UndefinedExchange undefined = {.form = rendezvous->parts[0].in->decoded, .exchange = exchange};
  uint64_t control[LANES] = {0};
  OriginNumber origin = 0;
  for (uint32_t i = 0; i < rendezvous->count; i++) {
    const WarpWideForm *form = rendezvous->parts[i].in->decoded;
    LaneMask lanes = rendezvous->parts[i].lanes;
    OriginNumber found = add_undefined(warp, form->a, lanes, undefined.bits, &undefined.yes);
    origin = found ? found : origin;
    found = add_undefined(warp, form->b, lanes, control, &undefined.yes);
    origin = found ? found : origin;
  }
  if (origin) {
    for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++)
      exchange_again(&undefined, exchange->lanes, VALUES[i], false);
    exchange_again(&undefined, exchange->lanes, 0, true);
    FOR_LANES(lane, exchange->lanes)
      if (undefined.bits[lane] || undefined.yes >> lane & 1)
        exchange_again(&undefined, 1u << lane, 0, true);
    if (undefined.form->act == act_match) match_undefined(&undefined);
    if (undefined.form->act == act_redux) spread_redux(&undefined);
  }
  for (int lane = 0; lane < LANES; lane++)
    if (control[lane]) {
      undefined.changed[lane] = UINT32_MAX;
      undefined.predicates_changed |= 1u << lane;
    }
  for (uint32_t i = 0; i < rendezvous->count; i++)
    mark_results(warp, rendezvous->parts[i].in->decoded, rendezvous->parts[i].lanes,
                 undefined.changed, undefined.predicates_changed, origin);
}
