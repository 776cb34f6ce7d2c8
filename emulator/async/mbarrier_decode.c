/* mbarrier_decode.c: decodes the mbarrier instructions, and finds the waits that are repeated. */
#include <string.h>

#include "async/mbarrier.h"

static const char *const no_semantics[] = {NULL};
static const char *const arrive_semantics[] = {"release", "relaxed", NULL};
static const char *const wait_semantics[] = {"acquire", "relaxed", NULL};
static const char *const relaxed_semantics[] = {"relaxed", NULL};

/* Takes .sem with .scope, .space and .b64. Without them: the strong semantics, .cta, generic. */
static MbarrierForm *take_common(Form *form, const char *const *semantics, bool cluster_window) {
  MbarrierForm *made = decoder_allocate(form->decoder, sizeof *made);
  *made = (MbarrierForm){.token = -1, .count = -1};
  int semantic = form_choose(form, semantics);
  made->acquire = made->release = semantic <= 0;
  /* The checker asks no wait for its scope: CUTLASS waits with .cta for arrivals of other blocks. */
  made->cluster_scope = form_take(form, "cluster");
  bool scoped = made->cluster_scope || form_take(form, "cta");
  if (scoped != (semantic >= 0))
    form_fail(form, ".relaxed, .acquire and .release need a scope, and a scope needs one of them");
  if (form_take(form, "shared::cta") || form_take(form, "shared"))
    made->window = WINDOW_CTA;
  else if (cluster_window && form_take(form, "shared::cluster"))
    made->window = WINDOW_CLUSTER;
  else
    made->window = WINDOW_GENERIC;
  if (!form_take(form, "b64")) form_fail(form, "mbarrier instructions are of type .b64");
  return made;
}

static bool check_operand(Form *form, int index, bool good, const char *what) {
  if (index >= 0 && !form->failed && !good) form_fail(form, "%s", what);
  return !form->failed;
}
static bool need_address(Form *form, int index) {
  return check_operand(form, index, form_operand(form, index)->kind == OPERAND_ADDRESS,
                       "the barrier's address must be in brackets");
}
static bool need_value(Form *form, int index) {
  return check_operand(form, index, form_operand(form, index)->kind == OPERAND_REGISTER,
                       "a count must be a register or a literal") &&
         form_numbers(form, index, 1, TYPE_U32);
}

static bool finish_mbarrier(Form *form, const MbarrierForm *made, Execute execute) {
  if (form->failed) return false;
  form->out->decoded = made;
  return form_end(form, execute);
}

/* "[a], n" and nothing else. */
static bool take_address_and_count(Form *form, MbarrierForm *made) {
  if (!form_operands(form, 2, 2)) return false;
  made->address = 0;
  made->count = 1;
  need_address(form, 0);
  need_value(form, 1);
  return true;
}

FORM_DECODER(decode_mbarrier_init, 2) {
  MbarrierForm *made = take_common(&form, no_semantics, false);
  if (!take_address_and_count(&form, made)) return false;
  return finish_mbarrier(&form, made, mbarrier_init);
}

FORM_DECODER(decode_mbarrier_inval, 2) {
  MbarrierForm *made = take_common(&form, no_semantics, false);
  if (!form_operands(&form, 1, 1)) return false;
  made->address = 0;
  need_address(&form, 0);
  return finish_mbarrier(&form, made, mbarrier_inval);
}

FORM_DECODER(decode_mbarrier_tx, 2) {
  MbarrierForm *made = take_common(&form, relaxed_semantics, true);
  made->complete = has_modifier(statement, "complete_tx");
  if (!take_address_and_count(&form, made)) return false;
  return finish_mbarrier(&form, made, mbarrier_tx);
}

FORM_DECODER(decode_mbarrier_arrive, 2) {
  MbarrierForm *made = take_common(&form, arrive_semantics, true);
  made->drop = has_modifier(statement, "arrive_drop");
  made->expect = form_take(&form, "expect_tx");
  made->no_complete = form_take(&form, "noComplete");
  bool counted = made->expect || made->no_complete;
  if (made->no_complete && (made->expect || made->window == WINDOW_CLUSTER || made->cluster_scope))
    return form_fail(&form, ".noComplete is for .shared::cta, .cta, and without .expect_tx");
  if (!form_operands(&form, counted ? 3 : 2, 3)) return false;
  const Operand *token = form_operand(&form, 0);
  if (token->kind == OPERAND_REGISTER && !token->constant && token->bytes == 8)
    made->token = 0;
  else if (token->kind != OPERAND_SINK)
    return form_fail(&form, "the state that an arrive returns is a 64-bit register or _");
  if (made->token == 0) form_destination(&form, 0, TYPE_U64);
  if (made->token == 0 && made->window == WINDOW_CLUSTER)
    return form_fail(&form, "an arrive in .shared::cluster returns no state: write _ for it");
  made->address = 1;
  need_address(&form, 1);
  if (out->operand_count > 2) {
    made->count = 2;
    need_value(&form, 2);
    const Operand *count = form_operand(&form, 2);
    if (!made->expect && count->constant && count->constant_value == 0)
      return form_fail(&form, "an arrive counts at least 1");
  }
  return finish_mbarrier(&form, made, mbarrier_arrive);
}

FORM_DECODER(decode_mbarrier_wait, 2) {
  MbarrierForm *made = take_common(&form, wait_semantics, false);
  made->potentially_blocking = has_modifier(statement, "try_wait");
  made->parity = form_take(&form, "parity");
  if (!form_operands(&form, 3, made->potentially_blocking ? 4 : 3)) return false;
  form_predicate_destination(&form, 0);
  made->address = 1;
  made->count = 2;
  need_address(&form, 1);
  form_source(&form, 2, made->parity ? TYPE_U32 : TYPE_B64);
  made->bounded = out->operand_count == 4;
  if (made->bounded) form_source(&form, 3, TYPE_U32); /* the suspend time, which is ignored */
  return finish_mbarrier(&form, made, mbarrier_wait);
}

FORM_DECODER(decode_mbarrier_pending_count, 2) {
  if (!form_take(&form, "b64")) return form_fail(&form, "mbarrier.pending_count is of type .b64");
  if (!form_operands(&form, 2, 2)) return false;
  form_destination(&form, 0, TYPE_U32);
  form_source(&form, 1, TYPE_B64);
  return form_end(&form, mbarrier_pending_count);
}

/* ---- Waits in loops -------------------------------------------------------------------------- */
/* Does it use memory, barriers or copies? A loop that only polls does not. */
static bool does_something(const Instruction *in) {
  if (in->traits & (ANY_BARRIER | COPY_ENGINE)) return true;
  return in->has_address && !(in->traits & ASKS_MBARRIER);
}

/* Does it change a register that it also reads, such as the number of attempts that are left? */
static bool counts_attempts(const Instruction *in) {
  const Operand *result = in->operand;
  if (in->results == 0 || result->kind != OPERAND_REGISTER) return false;
  for (int i = in->results; i < in->operand_count; i++)
    if (in->operand[i].kind == OPERAND_REGISTER && in->operand[i].slot == result->slot) return true;
  return false;
}

enum { COUNTERS = 16 };
typedef struct {
  const Instruction *code;
  uint32_t count;
  uint32_t *seen;  /* the number of the last search that visited it */
  uint32_t number; /* of the present search, from 1 */
  uint32_t *worklist;
  uint32_t counters[COUNTERS], counter_count; /* the first of those on the way */
} CodeSearch;

/* Can execution come from the place to this wait with nothing done in between? */
static bool leads_to(CodeSearch *search, uint32_t from, uint32_t wait) {
  uint32_t left = 0;
  bool there = false;
  search->number++;
  search->counter_count = 0;
  search->worklist[left++] = from;
  while (left) {
    uint32_t place = search->worklist[--left];
    if (place == wait) there = true;
    if (place == wait || place >= search->count || search->seen[place] == search->number) continue;
    search->seen[place] = search->number;
    const Instruction *in = &search->code[place];
    if (does_something(in)) continue;
    if (counts_attempts(in) && search->counter_count < COUNTERS)
      search->counters[search->counter_count++] = place;
    if (in->traits & JUMPS) search->worklist[left++] = in->operand[0].target;
    if (!(in->traits & ENDS_BLOCK) || in->guard >= 0) search->worklist[left++] = place + 1;
  }
  return there;
}

/* Does the loop around this wait count, so that it may give up? */
static bool may_give_up(CodeSearch *search, uint32_t wait) {
  uint32_t places[COUNTERS], count = search->counter_count;
  memcpy(places, search->counters, sizeof places);
  for (uint32_t i = 0; i < count; i++)
    if (leads_to(search, places[i] + 1, wait)) return true;
  return false;
}

void mbarrier_function_decoded(Decoder *decoder, const Instruction *code, uint32_t count) {
  CodeSearch search = {.code = code, .count = count};
  for (uint32_t i = 0; i < count; i++) {
    if (code[i].execute != mbarrier_wait) continue;
    if (!search.seen) { /* each instruction adds at most two, once */
      search.seen = decoder_allocate(decoder, count * sizeof *search.seen);
      search.worklist =
          decoder_allocate(decoder, (2 * (size_t)count + 2) * sizeof *search.worklist);
    }
    MbarrierForm *form = (MbarrierForm *)(uintptr_t)code[i].decoded;
    form->repeated = leads_to(&search, i + 1, i);
    form->gives_up = form->repeated && may_give_up(&search, i);
  }
}
