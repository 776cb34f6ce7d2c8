/* global_report.c: what is wrong with an access to global memory, in words. */
#include <string.h>

#include "base/fault.h"
#include "base/memory.h"
#include "checker/global/global_state.h"
#include "state/groups.h"

/* "block (1,0,0)" and "warp 3". */
static Phrase agent_name(const GlobalNow *now, const GlobalAccess *past) {
  const Launch *launch = now->warp->cta->cluster->launch;
  const Index3 *shape = &launch->cluster, *grid = &launch->grid;
  uint32_t rank = past->issuer / now->launch->warps_per_cta;
  uint32_t across = grid->x / shape->x, down = grid->y / shape->y;
  uint32_t x = past->cluster % across * shape->x + rank % shape->x;
  uint32_t y = past->cluster / across % down * shape->y + rank / shape->x % shape->y;
  uint32_t z = past->cluster / across / down * shape->z + rank / shape->x / shape->y;
  return phrase("warp %u of block (%u,%u,%u)", past->issuer % now->launch->warps_per_cta, x, y, z);
}

static Phrase describe_past(const GlobalNow *now) {
  const Phrase who = now->past.operation == now->launch->operation
                         ? agent_name(now, &now->past)
                         : global_operation_name(now->past.operation);
  return phrase("%s %s%s%s", who.text, now->conflict_reads ? "read" : "wrote",
                now->past.in ? " " : "", place_of(now->past.in).text);
}

/* ".cta" and so on: the least scope that includes both. */
static const char *needed_scope(const GlobalNow *now) {
  const GlobalAccess *past = &now->past, *own = &now->access;
  uint32_t warps = now->launch->warps_per_cta;
  if (past->operation != own->operation || past->cluster != own->cluster) return ".gpu";
  return past->issuer / warps != own->issuer / warps ? ".cluster" : ".cta";
}

static const char *scope_name(uint8_t reach) {
  static const char *const names[] = {"none", ".cta", ".cluster", ".gpu", ".sys"};
  return names[reach];
}

static const char *fix_for_scope(const char *needed) {
  if (!strcmp(needed, ".cta")) return "";
  return strcmp(needed, ".gpu") == 0
             ? " __threadfence_block() and the _block atomics reach the threads of one block only; "
               "use __threadfence() and the plain atomics, or cuda::thread_scope_device."
             : " Use cuda::thread_scope_cluster or wider.";
}

static bool is_strong(const GlobalAccess *access) { return access->reach != REACH_PLAIN; }

/* A finding about this access and the past one. unordered: nothing orders the two. */
static Finding about_both(const GlobalNow *now, const Rule *rule, bool unordered) {
  return (Finding){.rule = rule,
                   .other = now->past.in,
                   .unordered = unordered,
                   .memory = ABOUT_GLOBAL,
                   .bytes = now->bytes,
                   .address = now->conflict_address};
}

#define say(now, lanes, rule, unordered, ...) \
  say_text(now, lanes, rule, unordered, phrase(__VA_ARGS__).text)
static void say_text(const GlobalNow *now, LaneMask lanes, const Rule *rule, bool unordered,
                     const char *text) {
  const Finding what = about_both(now, rule, unordered);
  if (now->kept)
    *now->kept = kept_finding(now->warp, now->in, lanes, &what, text);
  else
    finding_of(now->warp, now->in, lanes, &what, "%s", text);
}

static void report_scope(const GlobalNow *now, LaneMask lanes, const char *does, const char *memory,
                         const char *past) {
  const char *needed = needed_scope(now);
  if (is_strong(&now->past) && is_strong(&now->access) &&
      !global_ordered(now, &now->past, KNOWN_ANY_SCOPE)) {
    say(now, lanes, RULE(SCOPE_TOO_NARROW), false,
        "%s %s with scope %s, which %s with scope %s, and nothing orders the two.\n"
        "Two atomics are atomic to each other only if the scope of each includes the other's "
        "thread: here both need %s.%s",
        does, memory, scope_name(now->access.reach), past, scope_name(now->past.reach), needed,
        fix_for_scope(needed));
    return;
  }
  say(now, lanes, RULE(SCOPE_TOO_NARROW), true,
      "%s %s, which %s, and nothing orders the two: there is a flag or an atomic between them, "
      "but a fence or an access on the way has a scope that does not include both threads.\n"
      "Every fence and every atomic between the two needs at least %s.%s",
      does, memory, past, needed, fix_for_scope(needed));
}

/* "there is" which fence, where one for global memory is missing? */
static const char *fences_there(const GlobalNow *now) {
  const GlobalAccess *past = &now->past;
  const Clock *clock = &order_of(now->check, now->access.issuer)->clock;
  bool here = past->operation == now->access.operation && past->cluster == now->access.cluster;
  return here && clock->fenced[FENCED_SHARED][past->agent] >= past->time
             ? "only a fence.proxy.async for shared memory"
             : "no fence.proxy.async";
}

/* The two accesses are ordered, but that is not enough. */
static void report_mistake(const GlobalNow *now, LaneMask lanes, const char *does,
                           const char *memory, const char *past) {
  if (now->mistake == MISTAKE_LOCK)
    say(now, lanes, RULE(FLAG_WITHOUT_FENCE), false,
        "%s %s, which %s: both warps held the same lock, but one of them took it without a fence "
        "after its compare-and-swap, so its accesses may happen before it has the lock.\n"
        "Put __threadfence() after the loop that takes the lock, and another one before the "
        "store that releases it.",
        does, memory, past);
  else if (now->mistake == MISTAKE_NARROW_LOCK)
    say(now, lanes, RULE(SCOPE_TOO_NARROW), false,
        "%s %s, which %s: both warps held the same lock, but the fence of one of them after its "
        "compare-and-swap has a scope that does not include the other thread, so its accesses may "
        "happen before it has the lock.\n"
        "Every fence and every atomic between the two needs at least %s.%s",
        does, memory, past, needed_scope(now), fix_for_scope(needed_scope(now)));
  else if (now->mistake == MISTAKE_VOLATILE)
    say(now, lanes, RULE(VOLATILE_RACE), true,
        "%s %s by a volatile access, which %s, and nothing orders the two.\n"
        "Volatile keeps the compiler from dropping an access. It is not atomic together with "
        "others and orders nothing: use an atomic, or order the two by a lock or a flag with "
        "fences.",
        does, memory, past);
  else if (now->mistake == MISTAKE_LANE_TOLD)
    say(now, lanes, RULE(LANE_RACE), true,
        "%s %s, which %s. Another lane of that warp has set a flag since%s%s, but a flag hands on "
        "only what its own thread has written or seen.\n"
        "The lanes of a warp do not run in step: put __syncwarp() between the writes and that "
        "fence or release.",
        does, memory, past, now->told_by ? " " : "", place_of(now->told_by).text);
  else if (now->mistake == MISTAKE_LANE_WAITED)
    say(now, lanes, RULE(LANE_RACE), true,
        "%s %s, which %s. Thread %u of this warp has waited for that, but nothing orders this "
        "thread after that wait.\n"
        "The lanes of a warp do not run in step: put __syncwarp() after the wait.",
        does, memory, past,
        now->warp->index * LANES +
            (uint32_t)first_lane(order_of(now->check, now->access.issuer)->lanes.learnt));
  else if (now->mistake == MISTAKE_PROXY)
    say(now, lanes, RULE(MISSING_PROXY_FENCE), false,
        "%s %s through the asynchronous proxy; %s through the generic proxy, and there is %s "
        "between that and this.\n"
        "Put fence.proxy.async after the write, in the thread that wrote, before it signals this "
        "thread.",
        does, memory, past, fences_there(now));
  else
    say(now, lanes, RULE(READ_ONLY_LOAD_OF_WRITTEN), false,
        "%s %s by ld.global.nc, which %s in this kernel.\n"
        "The read-only path may hold an older value, whatever orders the two: it is for memory "
        "that the kernel does not write. Drop __ldg(), or the const __restrict__ of the pointer.",
        does, memory, past);
}

/* A warp of this cluster reads, of which other lanes wait. */
static Phrase hint_for_lanes(const GlobalNow *now) {
  const GlobalAccess *past = &now->past;
  const uint32_t warps = now->launch->warps_per_cta;
  if (!now->own || past->operation != now->access.operation ||
      past->cluster != now->access.cluster || past->flags & GLOBAL_ASYNC)
    return NO_PHRASE;
  const Warp *warp =
      &now->warp->cta->cluster->ctas[past->issuer / warps].warps[past->issuer % warps];
  const Instruction *behind = now->conflict_reads        ? lanes_behind(warp, past->in)
                              : now->kind == ACCESS_READ ? lanes_behind(now->warp, now->in)
                                                         : NULL;
  if (!behind) return NO_PHRASE;
  return phrase(
      "Other lanes of the warp that reads are still %s. If one of them waits there for all, "
      "put __syncwarp() between that wait and the reads: the lanes of a warp do not run in "
      "step.",
      place_of(behind).text);
}

static const char *hint_for_access(const GlobalNow *now) {
  const GlobalWarp *own = &order_of(now->check, now->access.issuer)->global;
  const GlobalAccess *past = &now->past;
  if (past->operation != now->access.operation && past->operation != now->launch->dependency)
    return "Record an event in the one stream after its work and let the other stream wait for it "
           "(cudaEventRecord, cudaStreamWaitEvent); in a graph, add an edge; or let the host wait "
           "in between.";
  if (past->flags & GLOBAL_CP_ASYNC && past->time == NOT_FINISHED)
    return "That cp.async may still be reading. Wait for it first (cp.async.wait_group or "
           "cp.async.wait_all in the threads that issued it), then put a barrier.";
  if (past->flags & GLOBAL_ASYNC && past->operation == now->access.operation &&
      past->in == now->access.in)
    return "Several threads issue one copy: let one of them do so (if (threadIdx.x == 0), or "
           "elect.sync), or give each its own place.";
  /* A block that learns nothing of others cannot wait for their copies. */
  if (past->flags & GLOBAL_ASYNC && past->time == NOT_FINISHED && !now->conflict_reads &&
      (past->cluster == now->access.cluster || own->strong_read))
    return "That bulk store may still be writing: let the thread that issued it wait with "
           "cp.async.bulk.wait_group (.read waits only until its source has been read), and then "
           "tell the others.";
  if (past->operation != now->access.operation)
    return "The two kernels may run at the same time: griddepcontrol.wait "
           "(cudaGridDependencySynchronize()) before the first access to what the other kernel "
           "touches.";
  if (is_strong(past) != is_strong(&now->access))
    return "One of the two is atomic or volatile, the other one is not: make both atomic, or order "
           "them.";
  if (own->strong_read || own->strong_write)
    return "Atomics, volatile and relaxed accesses order nothing by themselves: the writer needs "
           "__threadfence() before its flag, the reader one after it has seen the flag.";
  if (past->cluster != now->access.cluster && now->access.in->traits & TENSOR_MAP)
    return "Blocks of one grid run in any order: let each publish its map in a place of its own.";
  if (past->cluster != now->access.cluster)
    return "Blocks of one grid run in any order: use atomics, a grid-wide barrier, or a second "
           "kernel.";
  return "Put a barrier between the two: __syncthreads(), or for several blocks of a cluster "
         "cluster.sync().";
}

static void report_access(const GlobalNow *now) {
  const Phrase of_past = describe_past(now), of_memory = memory_place(now->conflict_address);
  const Phrase of_lanes = hint_for_lanes(now);
  const char *past = of_past.text, *memory = of_memory.text;
  LaneMask lanes = 1u << now->conflict_lane;
  const char *does = now->kind == ACCESS_READ    ? "reads"
                     : now->kind == ACCESS_WRITE ? "writes"
                                                 : "atomically changes";
  bool flag_is_narrow =
      now->mistake == MISTAKE_VOLATILE && global_ordered(now, &now->past, KNOWN_ANY_SCOPE);
  if (now->mistake != MISTAKE_RACE && !flag_is_narrow) {
    report_mistake(now, lanes, does, memory, past);
    return;
  }
  bool both_strong = is_strong(&now->past) && is_strong(&now->access);
  if (now->past.operation == now->access.operation) {
    bool fenced = global_ordered(now, &now->past, KNOWN_ANY_FENCE);
    if (!both_strong && !fenced && global_ordered(now, &now->past, KNOWN_ACQUIRED)) {
      say(now, lanes, RULE(FLAG_WITHOUT_FENCE), true,
          "%s %s, which %s, and nothing orders the two: this warp has seen the flag that was set "
          "after it, but has executed no fence since.\n"
          "Reading a flag with a volatile, relaxed or atomic access does not order what follows: "
          "put __threadfence() after it, or read it with ld.acquire (cuda::memory_order_acquire).",
          does, memory, past);
      return;
    }
    if (both_strong && global_sizes_differ(&now->past, &now->access)) {
      say(now, lanes, RULE(ACCESS_SIZES_DIFFER), false,
          "%s %s in %u bytes at a time, which %s in %u bytes at a time, and nothing orders the "
          "two.\nTwo atomics or volatile accesses are atomic to each other only if they touch "
          "exactly the same bytes: use one type for this place.",
          does, memory, now->access.size, past, now->past.size);
      return;
    }
    if (both_strong || fenced || global_ordered(now, &now->past, KNOWN_ANY_SCOPE)) {
      report_scope(now, lanes, does, memory, past);
      return;
    }
  }
  const char *hint = of_lanes.text[0] ? of_lanes.text : hint_for_access(now);
  uint32_t other = now->past.operation;
  if (other != now->launch->operation && other != now->launch->dependency) {
    say(now, lanes, RULE(STREAM_RACE), true,
        "%s %s, which %s, and nothing orders the two. This is %s.\n%s", does, memory, past,
        global_operation_name(now->launch->operation).text, hint);
    return;
  }
  say(now, lanes, RULE(GLOBAL_RACE), true, "%s %s, which %s, and nothing orders the two.\n%s", does,
      memory, past, hint);
}

void global_report(const GlobalNow *now) {
  if (now->past.in) global_lanes_note_race(now->launch, now->in, now->past.in);
  report_access(now);
}

void global_report_later(const GlobalNow *now, KeptFinding *kept) {
  GlobalNow later = *now;
  later.kept = kept;
  report_access(&later);
}
