/* flow_call.c: calls of device functions, direct and through pointers, and of the functions that
 * the runtime provides (vprintf, __assertfail). Arguments and results are bytes of the caller's and
 * the callee's .local frames; a call copies them. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/device_heap.h"
#include "base/events.h"
#include "flow/device_printf.h"
#include "flow/flow.h"
#include "ptx/form.h"
#include "state/cluster.h"
#include "state/unwritten_registers.h"

static uint64_t *frame_column(const Warp *warp) {
  const Module *module = module_of(warp->cta->cluster);
  return column_u64(warp, module->columns[module->frame_column].slot);
}

static uint32_t frame_size(const Function *function) {
  return (function->frame_bytes + 15u) & ~15u;
}

/* ---- A recursive call keeps the caller's registers ---- */
static size_t registers_bytes(const Function *function) {
  size_t slots = 0;
  for (int class = CLASS_32; class < CLASS_COUNT; class ++)
    slots += function->frame[class] * class_slots[class];
  return slots * SLOT_BYTES;
}

static void save_registers(Warp *warp, Frame *frame) {
  const Function *function = frame->caller;
  const Module *module = function->module;
  frame->saved = need_memory(malloc(registers_bytes(function) + 1));
  frame->saved_predicates =
      need_memory(malloc((function->frame[CLASS_PREDICATE] + 1u) * sizeof(uint32_t)));
  uint8_t *to = frame->saved;
  for (int class = CLASS_32; class < CLASS_COUNT; class ++) {
    size_t first = module->region_first[class] + function->base[class] * class_slots[class];
    size_t bytes = (size_t)function->frame[class] * class_slots[class] * SLOT_BYTES;
    memcpy(to, warp->registers + first * SLOT_BYTES, bytes);
    to += bytes;
  }
  memcpy(frame->saved_predicates, warp->predicates + function->base[CLASS_PREDICATE],
         function->frame[CLASS_PREDICATE] * sizeof(uint32_t));
}

static void restore_registers(Warp *warp, const Frame *frame, LaneMask mask) {
  const Function *function = frame->caller;
  const Module *module = function->module;
  const uint8_t *from = frame->saved;
  for (int class = CLASS_32; class < CLASS_COUNT; class ++) {
    unsigned lane_bytes = class_slots[class] * 4u;
    size_t first = module->region_first[class] + function->base[class] * class_slots[class];
    for (uint32_t i = 0; i < function->frame[class]; i++) {
      uint8_t *column = warp->registers + (first + i * class_slots[class]) * SLOT_BYTES;
      for (int lane = 0; lane < LANES; lane++)
        if (mask >> lane & 1)
          memcpy(column + lane * lane_bytes, from + lane * lane_bytes, lane_bytes);
      from += class_slots[class] * SLOT_BYTES;
    }
  }
  for (uint32_t i = 0; i < function->frame[CLASS_PREDICATE]; i++) {
    uint32_t *predicate = &warp->predicates[function->base[CLASS_PREDICATE] + i];
    *predicate = (*predicate & ~mask) | (frame->saved_predicates[i] & mask);
  }
}

/* ---- Call and return ---- */
static bool copy_bytes(Warp *warp, int lane, uint64_t to, uint64_t from, uint32_t bytes) {
  if (to > warp->local_bytes || bytes > warp->local_bytes - to || from > warp->local_bytes ||
      bytes > warp->local_bytes - from)
    return false;
  uint8_t *local = warp->local + (size_t)lane * warp->local_bytes;
  memmove(local + to, local + from, bytes);
  emit_local_copied(warp, lane, (uint32_t)to, (uint32_t)from, bytes);
  return true;
}

/* Other lanes of the group, whose guard is false, go on behind `place`. Returns the group of these. */
static Group *leave_others(Warp *warp, LaneMask mask, uint32_t place) {
  Group *group = current_group(warp);
  if (mask == group->mask) return group;
  split_group(warp->flow, group->mask & ~mask)->place = place + 1;
  return current_group(warp);
}

static StepResult call_function(Warp *warp, const Instruction *in, LaneMask mask,
                                const Function *callee) {
  const CallSite *call = in->decoded;
  Group *group = current_group(warp);
  const Function *caller = group->function;
  uint32_t place = (uint32_t)(in - caller->code);
  if (callee->parameter_count != call->argument_count || callee->result_count != call->result_count)
    return fault(warp, in, mask, 719, RULE(CALL),
                 "%s takes %u arguments and gives %u results, but the call passes %u and takes %u",
                 callee->name, callee->parameter_count, callee->result_count, call->argument_count,
                 call->result_count);
  uint32_t depth = group->frame ? group->frame->depth + 1 : 1;
  uint64_t *frames = frame_column(warp);
  uint32_t size = frame_size(caller);
  for (int lane = 0; lane < LANES; lane++) {
    if (!(mask >> lane & 1)) continue;
    uint64_t old = frames[lane], fresh = old + size;
    if (fresh + frame_size(callee) > warp->local_bytes || depth > 1u << 16)
      return fault(warp, in, 1u << lane, 719, RULE(STACK_OVERFLOW),
                   "the call of %s needs more stack than there is: %u bytes for each thread",
                   callee->name, warp->local_bytes);
    for (uint32_t i = 0; i < call->argument_count; i++) {
      uint32_t bytes = callee->parameters[i].bytes;
      if (bytes > call->arguments[i].bytes) bytes = call->arguments[i].bytes;
      copy_bytes(warp, lane, fresh + callee->parameters[i].offset, old + call->arguments[i].offset,
                 bytes);
    }
    frames[lane] = fresh;
  }
  Frame *frame = new_zeros(1, sizeof *frame);
  frame->caller = caller;
  frame->callee = callee;
  frame->call = call;
  frame->return_place = place + 1;
  frame->references = 1;
  frame->depth = depth;
  frame->frame_bytes = size;
  bool recursive = callee->component == caller->component;
  if (recursive) save_registers(warp, frame);
  group = leave_others(warp, mask, place);
  frame->parent = group->frame; /* takes over the group's reference */
  group->frame = frame;
  group->function = callee;
  group->place = 0;
  fill_unwritten_registers(warp, callee, mask);
  emit_function_begins(warp, callee, mask, recursive);
  return STEP_JUMPED;
}

StepResult return_lanes(Warp *warp, uint32_t place, LaneMask mask) {
  Group *group = leave_others(warp, mask, place);
  Frame *frame = group->frame;
  const CallSite *call = frame->call;
  uint64_t *frames = frame_column(warp);
  for (int lane = 0; lane < LANES; lane++) {
    if (!(mask >> lane & 1)) continue;
    uint64_t old = frames[lane] - frame->frame_bytes;
    for (uint32_t i = 0; i < call->result_count; i++) {
      uint32_t bytes = frame->callee->results[i].bytes;
      if (bytes > call->results[i].bytes) bytes = call->results[i].bytes;
      copy_bytes(warp, lane, old + call->results[i].offset,
                 frames[lane] + frame->callee->results[i].offset, bytes);
    }
    frames[lane] = old;
  }
  if (frame->saved) restore_registers(warp, frame, mask);
  group->function = frame->caller;
  group->place = frame->return_place;
  group->frame = frame->parent;
  if (frame->parent) frame->parent->references++;
  frame_release(frame);
  return STEP_JUMPED;
}

static StepResult run_call(Warp *warp, const Instruction *in, LaneMask mask) {
  const CallSite *call = in->decoded;
  return call_function(warp, in, mask, call->callee);
}

static StepResult run_indirect_call(Warp *warp, const Instruction *in, LaneMask mask) {
  /* lanes that call the same function go first, together; the others repeat this instruction
   * later */
  int first = first_lane(mask);
  uint64_t address = lane_value(warp, &in->operand[0], first);
  LaneMask together = 0;
  for (int lane = first; lane < LANES; lane++)
    if ((mask >> lane & 1) && lane_value(warp, &in->operand[0], lane) == address)
      together |= 1u << lane;
  const Function *callee = function_at(module_of(warp->cta->cluster), address);
  if (!callee)
    return fault(warp, in, together, 715, RULE(CALL),
                 "a call through 0x%llx, which is not a function", (unsigned long long)address);
  if (callee->refusal)
    return fault(warp, in, together, 715, RULE(CALL), "%s is called, which cannot be emulated: %s",
                 callee->name, callee->refusal);
  Group *group = current_group(warp);
  LaneMask later = mask & ~together;
  if (later) {
    group->place = (uint32_t)(in - group->function->code);
    split_group(warp->flow, later);
  }
  return call_function(warp, in, together, callee);
}

/* ---- What the runtime provides ---- */
static uint64_t argument(const Warp *warp, const CallSite *call, uint32_t index, int lane) {
  uint64_t value = 0;
  uint64_t at = frame_column(warp)[lane] + call->arguments[index].offset;
  uint32_t bytes = call->arguments[index].bytes < 8 ? call->arguments[index].bytes : 8;
  if (at + bytes <= warp->local_bytes)
    memcpy(&value, warp->local + (size_t)lane * warp->local_bytes + at, bytes);
  return value;
}

/* The same, and undefined bits in it matter. */
static uint64_t decisive_argument(Warp *warp, const Instruction *in, uint32_t index, int lane,
                                  UndefinedUse use) {
  const CallSite *call = in->decoded;
  uint64_t at = frame_column(warp)[lane] + call->arguments[index].offset;
  uint32_t bytes = call->arguments[index].bytes < 8 ? call->arguments[index].bytes : 8;
  uint8_t *from[LANES] = {NULL};
  from[lane] = warp->local + (size_t)lane * warp->local_bytes + at;
  if (at + bytes <= warp->local_bytes)
    emit_local_used(warp, in, 1u << lane, from, bytes, ACCESS_READ, use);
  return argument(warp, call, index, lane);
}

static void set_result(Warp *warp, const CallSite *call, int lane, uint64_t value) {
  if (call->result_count == 0) return;
  uint32_t bytes = call->results[0].bytes < 8 ? call->results[0].bytes : 8;
  uint64_t at = frame_column(warp)[lane] + call->results[0].offset;
  if (at + bytes > warp->local_bytes) return;
  uint8_t *to[LANES] = {NULL};
  to[lane] = warp->local + (size_t)lane * warp->local_bytes + at;
  memcpy(to[lane], &value, bytes);
  emit_local_used(warp, NULL, 1u << lane, to, bytes, ACCESS_WRITE, USED_FOR_NOTHING);
}

static StepResult print_of_lane(Warp *warp, const Instruction *in, int lane) {
  const CallSite *call = in->decoded;
  uint64_t format_at = argument(warp, call, 0, lane), at = argument(warp, call, 1, lane);
  const char *format, *arguments = NULL;
  size_t format_bytes, argument_bytes = 0;
  if (!format_at) { /* as the CUDA guide says */
    set_result(warp, call, lane, (uint32_t)-1);
    return STEP_NEXT;
  }
  if (!device_bytes_at(warp, lane, format_at, &format, &format_bytes))
    return fault(warp, in, 1u << lane, 700, RULE(PRINTF),
                 "the format of a printf is not a string in device memory: 0x%llx",
                 (unsigned long long)format_at);
  if (at && !device_bytes_at(warp, lane, at, &arguments, &argument_bytes))
    return fault(warp, in, 1u << lane, 700, RULE(PRINTF),
                 "the arguments of a printf are not in device memory: 0x%llx",
                 (unsigned long long)at);
  DeviceText text = device_printf(warp, in, lane, format, format_bytes, arguments, argument_bytes);
  if (text.too_wide)
    finding(warp, in, 1u << lane, RULE(PRINTF_WIDTH),
            "a printf with a width or a precision above %d, the most that is printed here for one "
            "argument",
            PRINTF_MOST_WIDTH);
  cluster_print(warp->cta->cluster, text.text, text.bytes);
  set_result(warp, call, lane, (uint32_t)text.arguments);
  free(text.text);
  return STEP_NEXT;
}

static StepResult run_vprintf(Warp *warp, const Instruction *in, LaneMask mask) {
  StepResult result = STEP_NEXT;
  for (LaneMask left = mask; left && result == STEP_NEXT; left &= left - 1)
    result = print_of_lane(warp, in, first_lane(left));
  return result;
}

/* A copy of a device string, cut to the length of a message. The caller frees it. */
static char *string_of(const Warp *warp, const CallSite *call, uint32_t index, int lane) {
  enum { MOST = 1024 };
  const char *text;
  size_t count;
  if (!device_bytes_at(warp, lane, argument(warp, call, index, lane), &text, &count))
    return strdup("?");
  return strndup(text, count < MOST ? count : MOST);
}

static StepResult run_assertfail(Warp *warp, const Instruction *in, LaneMask mask) {
  const CallSite *call = in->decoded;
  int lane = first_lane(mask);
  char *message = string_of(warp, call, 0, lane), *file = string_of(warp, call, 1, lane);
  char *function = string_of(warp, call, 3, lane);
  uint32_t line = (uint32_t)argument(warp, call, 2, lane);
  StepResult result =
      fault(warp, in, mask, 710, RULE(ASSERT), "%s:%u: %s: Assertion `%s` failed.",
            file ? file : "?", line, function ? function : "?", message ? message : "?");
  free(message);
  free(file);
  free(function);
  return result;
}

/* The resulting address depends on the order, so these calls wait for their turn. */
static StepResult run_malloc(Warp *warp, const Instruction *in, LaneMask mask) {
  launch_is_unique(warp);
  if (!cluster_has_turn(warp)) return STEP_BLOCKED;
  for (int lane = 0; lane < LANES; lane++)
    if (mask >> lane & 1)
      set_result(warp, in->decoded, lane,
                 device_heap_allocate(decisive_argument(warp, in, 0, lane, USED_BY_MALLOC)));
  return STEP_NEXT;
}

static StepResult run_free(Warp *warp, const Instruction *in, LaneMask mask) {
  launch_is_unique(warp);
  if (!cluster_has_turn(warp)) return STEP_BLOCKED;
  for (int lane = 0; lane < LANES; lane++) {
    if (!(mask >> lane & 1)) continue;
    uint64_t address = decisive_argument(warp, in, 0, lane, USED_BY_FREE);
    switch (device_heap_free(address)) {
      case HEAP_FREED:
        break;
      case HEAP_FREED_BEFORE:
        return fault(
            warp, in, 1u << lane, 719, RULE(DOUBLE_FREE),
            "free of 0x%llx, a block of the kernels' malloc that was freed before: free it "
            "once, and set the pointer to NULL after it",
            (unsigned long long)address);
      case HEAP_NO_BLOCK:
        return fault(
            warp, in, 1u << lane, device_heap_holds(address) ? 719 : 700, RULE(DEVICE_FREE),
            "free of 0x%llx, where no block of the kernels' malloc begins: free takes what "
            "malloc has given to a kernel, and nothing else",
            (unsigned long long)address);
    }
  }
  return STEP_NEXT;
}

FORM_DECODER(decode_call, 1) {
  const CallSite *call = out->decoded;
  form_take(&form, "uni");
  if (!call->callee) return form_end(&form, run_indirect_call);
  const Function *callee = call->callee;
  if (callee->defined) {
    if (callee->entry)
      return decoder_error(decoder, statement, "%s is a kernel; kernels cannot be called",
                           callee->name);
    return form_end(&form, run_call);
  }
  if (strcmp(callee->name, "vprintf") == 0 && call->argument_count == 2)
    return form_end(&form, run_vprintf);
  if (strcmp(callee->name, "__assertfail") == 0 && call->argument_count == 5)
    return form_end(&form, run_assertfail);
  bool allocates = strcmp(callee->name, "malloc") == 0;
  if ((allocates || strcmp(callee->name, "free") == 0) && call->argument_count == 1) {
    if (!device_heap_prepare())
      return decoder_error(decoder, statement, "out of memory for the device heap");
    return form_end(&form, allocates ? run_malloc : run_free);
  }
  if (strncmp(callee->name, "__cudaCDP", 9) == 0 || strncmp(callee->name, "cudaCDP", 7) == 0 ||
      strncmp(callee->name, "cudaDevice", 10) == 0)
    return decoder_error(decoder, statement,
                         "this kernel launches kernels itself or asks the device's own runtime "
                         "(dynamic parallelism), which is machine code in libcudadevrt and not "
                         "emulated: launch from the host, for instance in a loop");
  return decoder_error(
      decoder, statement,
      "%s has no body in this module. If another file defines it, compile and link "
      "both with nvcc -rdc=true; if a library does, that has no PTX in this program",
      callee->name);
}
