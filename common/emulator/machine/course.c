/* course.c: does what memory holds decide what a kernel does? (course.h)
 *
 * A register varies if its value may come from memory. Such registers are followed through the code: none of
 * them may be an address, guard anything but arithmetic, or say which lanes or threads take part. Parameters do not
 * vary: they are the same in both launches. */
#include "machine/course.h"

#include <stdlib.h>
#include <string.h>

#include "arithmetic/loadstore.h"
#include "base/fault.h"
#include "ptx/program.h"

enum { BITS = 64 };
static const size_t WORDS_MOST = 1u
                                 << 20; /* of all sets; kernels that need more count as not fixed */

/* A set has a bit for each register slot, one for each predicate, and one for the carry. */
typedef struct {
  const Function *kernel;
  uint32_t first_predicate, carry;
  size_t words;        /* of a set */
  uint32_t *leader_of; /* the number of an instruction's set in `before`, if it has one */
  uint64_t *before;    /* what varies where groups of lanes may arrive by a jump */
  bool *reached;       /* of each of these */
  uint64_t *now;       /* what varies before the instruction that is looked at */
  bool changed;
} Course;

static bool is_set(const Course *course, uint32_t bit) {
  return course->now[bit / BITS] >> bit % BITS & 1;
}
static void set_bit(Course *course, uint32_t bit, bool value) {
  uint64_t mask = 1ull << bit % BITS, *word = &course->now[bit / BITS];
  *word = value ? *word | mask : *word & ~mask;
}

static bool varies(const Course *course, const Operand *operand) {
  switch ((OperandKind)operand->kind) {
    case OPERAND_REGISTER:
    case OPERAND_ADDRESS:
      return is_set(course, operand->slot);
    case OPERAND_PREDICATE:
      return is_set(course, course->first_predicate + operand->slot);
    case OPERAND_VECTOR:
      for (uint32_t i = 0; i < operand->count; i++)
        if (varies(course, &operand->elements[i])) return true;
      return false;
    default:
      return false;
  }
}

static bool any_varies(const Course *course, const Instruction *in, uint32_t first) {
  for (uint32_t i = first; i < in->operand_count; i++)
    if (varies(course, &in->operand[i])) return true;
  return false;
}

static bool any_address_varies(const Course *course, const Instruction *in) {
  for (uint32_t i = 0; i < in->operand_count; i++)
    if (in->operand[i].kind == OPERAND_ADDRESS && varies(course, &in->operand[i])) return true;
  return false;
}

/* replaces: no lane keeps what was there. */
static void set_result(Course *course, const Operand *operand, bool value, bool replaces) {
  if (operand->kind == OPERAND_VECTOR)
    for (uint32_t i = 0; i < operand->count; i++)
      set_result(course, &operand->elements[i], value, replaces);
  bool predicate = operand->kind == OPERAND_PREDICATE;
  if (!predicate && operand->kind != OPERAND_REGISTER) return;
  if (value || replaces)
    set_bit(course, predicate ? course->first_predicate + operand->slot : operand->slot, value);
}

static void set_results(Course *course, const Instruction *in, bool value) {
  bool replaces = in->guard < 0;
  if (in->traits & READS_FIRST || in->operand_count == 0) return;
  set_result(course, &in->operand[0], value, replaces);
  /* a second result, as in "p|q", or a source that then counts as varying, too */
  if (in->operand_count > 1 && in->operand[1].kind == OPERAND_PREDICATE)
    set_result(course, &in->operand[1], value, false);
}

static void compute(Course *course, const Instruction *in, bool guard_varies) {
  bool value = guard_varies || any_varies(course, in, in->traits & READS_FIRST ? 0 : 1);
  if (in->uses_carry) value |= is_set(course, course->carry);
  if (in->uses_carry && value) set_bit(course, course->carry, true);
  set_results(course, in, value);
}

/* False: another launch may do something else here. */
static bool access_memory(Course *course, const Instruction *in) {
  if (any_address_varies(course, in) || in->meets_blocks || in->traits & ACTS) return false;
  if ((in->traits & FLOW) != FLOW_MEMORY) { /* it only computes an address, or is a hint */
    if (in->traits && !(in->traits & HINTS)) return false;
    compute(course, in, false);
    return true;
  }
  if (in->traits & READS_FIRST) return true;
  const Transfer *load = in->decoded;
  set_results(course, in, load->space != SPACE_PARAM);
  return true;
}

static bool take_control(Course *course, const Instruction *in) {
  if (in->traits & WARP_WIDE) {
    if (in->operand_count && varies(course, &in->operand[in->operand_count - 1])) return false;
    compute(course, in, false);
    return true;
  }
  bool lanes_only = (in->traits & FLOW) == FLOW_DEFINED; /* activemask */
  if (lanes_only) set_results(course, in, false);
  return lanes_only ||
         (in->traits & (JUMPS | RETURNS | ENDS_BLOCK) && !(in->traits & (CALLS | JUMPS_BY_LIST)));
}

static bool meet(const Course *course, const Instruction *in) {
  return (in->traits & (CTA_BARRIER | WARP_BARRIER)) && !(in->traits & (ACTS | MBARRIER)) &&
         !any_varies(course, in, 0);
}

static bool follow(Course *course, const Instruction *in) {
  bool guard_varies =
      in->guard >= 0 && is_set(course, course->first_predicate + (uint32_t)in->guard);
  if (in->kind == KIND_ARITHMETIC) {
    compute(course, in, guard_varies);
    return true;
  }
  if (guard_varies) return false;
  switch ((InstructionKind)in->kind) {
    case KIND_MEMORY:
      return access_memory(course, in);
    case KIND_CONTROL:
      return take_control(course, in);
    case KIND_BARRIER:
      return meet(course, in);
    default: /* copies in flight and matrices */
      return false;
  }
}

/* What varies now varies there, too. */
static void arrive(Course *course, uint32_t place) {
  uint32_t number = course->leader_of[place];
  uint64_t *before = course->before + number * course->words;
  course->changed |= !course->reached[number];
  course->reached[number] = true;
  for (size_t i = 0; i < course->words; i++) {
    course->changed |= (course->now[i] & ~before[i]) != 0;
    before[i] |= course->now[i];
  }
}

/* Goes through the code once. */
static bool go_through(Course *course) {
  const Function *kernel = course->kernel;
  bool here = true; /* some lanes may come here from the instruction before */
  memset(course->now, 0, course->words * sizeof *course->now);
  for (uint32_t i = 0; i < kernel->count; i++) {
    const Instruction *in = &kernel->code[i];
    if (in->leader) {
      uint32_t number = course->leader_of[i];
      if (here) arrive(course, i);
      here = course->reached[number];
      memcpy(course->now, course->before + number * course->words,
             course->words * sizeof *course->now);
    }
    if (!here) continue;
    if (!follow(course, in)) return false;
    if (in->traits & JUMPS) {
      uint32_t target = in->operand[0].target;
      if (in->operand[0].kind != OPERAND_LABEL || target >= kernel->count) return false;
      arrive(course, target);
    }
    here = !(in->traits & ENDS_BLOCK) || in->guard >= 0;
  }
  return true;
}

static bool begin(Course *course) {
  const Function *kernel = course->kernel;
  course->first_predicate = kernel->module->slots;
  course->carry = course->first_predicate + kernel->module->predicates;
  course->words = course->carry / BITS + 1;
  course->leader_of = calloc(kernel->count + 1u, sizeof *course->leader_of);
  if (!course->leader_of) out_of_memory();
  uint32_t leaders = 0;
  for (uint32_t i = 0; i < kernel->count; i++)
    if (kernel->code[i].leader) course->leader_of[i] = leaders++;
  if (leaders * course->words > WORDS_MOST) return false;
  course->before = calloc(leaders * course->words + 1, sizeof *course->before);
  course->reached = calloc(leaders + 1u, sizeof *course->reached);
  course->now = calloc(course->words, sizeof *course->now);
  if (!course->before || !course->reached || !course->now) out_of_memory();
  return true;
}

bool course_is_fixed(const Function *kernel) {
  Course course = {.kernel = kernel};
  bool fixed = begin(&course);
  do {
    course.changed = false;
    fixed = fixed && go_through(&course);
  } while (fixed && course.changed);
  free(course.leader_of);
  free(course.before);
  free(course.reached);
  free(course.now);
  return fixed;
}
