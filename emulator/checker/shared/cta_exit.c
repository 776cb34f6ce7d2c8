/* cta_exit.c: a block of a cluster has ended: were its peers done with its shared memory?
 *
 * An access that came in time by luck is as wrong as one that came too late, so the check does not
 * depend on the timing. Some warp of this block must have waited for something that orders every
 * access of another block to this one's memory. At the end of a kernel a cluster barrier without
 * release and acquire is enough for that ("I am done"): separate vectors record what has passed
 * such barriers. */
#include <stdlib.h>

#include "base/holds.h"
#include "base/fault.h"
#include "checker/shared/shared_access.h"

/* Does any warp of the block know that the clock (or number of phases) at this place of the vectors has
 * reached this value? Here every barrier.cluster counts. */
static bool cta_knows(const ClusterCheck *check, uint32_t rank, uint32_t place, uint32_t value) {
  const uint32_t *left = order_block(check, rank)->leaving_seen.seen;
  if (left && left[place] >= value) return true;
  for (uint32_t w = 0; w < check->warps_per_cta; w++) {
    uint32_t agent = rank * check->warps_per_cta + w;
    if (agent == place || has_seen(check, agent, place, value)) return true;
  }
  return false;
}

static bool cta_knows_landed(const ClusterCheck *check, uint32_t rank, const AsyncCheck *operation,
                             uint32_t barrier_rank) {
  if (!operation->landed) return false;
  if (operation->waited_clock && cta_knows(check, rank, operation->agent, operation->waited_clock))
    return true;
  uint32_t address = operation->barrier;
  if (operation->kind != ASYNC_CTA_TO_CTA) address = barrier_rank << 24 | SHARED_OFFSET(address);
  const MbarrierCheck *barrier = mbarrier_at(check, address);
  if (!barrier || barrier->place == UINT32_MAX) return true;
  return cta_knows(check, rank, barrier->place, operation->landing_phase[barrier_rank] + 1);
}

static bool load_unknown(const ClusterCheck *check, const MbarrierCheck *barrier) {
  return barrier->landed.in && barrier->valid && barrier->place != UINT32_MAX &&
         !cta_knows(check, SHARED_RANK(barrier->address), barrier->place,
                    barrier->landed.phase + 1);
}

static void report_peer_exited(Cta *cta, uint32_t agent, const Instruction *in, LaneMask lanes,
                               const char *what) {
  finding(
      warp_of(cta->cluster, agent), in, lanes, RULE(PEER_EXITED),
      "%s rank %u of the cluster, which has ended without waiting for this: it might end "
      "earlier, and then its memory is gone.\n"
      "Keep every block alive until its peers are done with it: barrier.cluster.arrive and .wait "
      "before the end of the kernel.",
      what, cta->rank);
}

static void look_at_entry(Cta *cta, const AccessRecord *entry) {
  const ClusterCheck *check = cta->cluster->check;
  uint32_t rank = cta->rank;
  bool asynchronous = entry->kind == ENTRY_ASYNC_WRITE || entry->kind == ENTRY_ASYNC_READ;
  if (entry->kind == ENTRY_BARRIER) return;
  if (!asynchronous) {
    if (entry->agent / check->warps_per_cta == rank) return;
    if (cta_knows(check, rank, entry->agent, entry->clock)) return;
    report_peer_exited(
        cta, entry->agent, entry->in, 0,
        entry->kind == ENTRY_READ ? "reads shared memory of" : "writes shared memory of");
    return;
  }
  const AsyncCheck *operation = entry->operation;
  bool between = operation->kind == ASYNC_CTA_TO_CTA;
  if (operation->barrier == 0 || (entry->kind == ENTRY_ASYNC_READ && !between)) return;
  if (operation->agent / check->warps_per_cta == rank && !between) return; /* check_cta_exit */
  if (cta_knows_landed(check, rank, operation, between ? SHARED_RANK(operation->barrier) : rank))
    return;
  report_peer_exited(cta, operation->agent, operation->in, 1u << operation->lane,
                     entry->kind == ENTRY_ASYNC_READ ? "copies from shared memory of"
                                                     : "copies into shared memory of");
}

/* A peer's read counts until the word is written again. */
static void look_at_reads(Cta *cta, const struct CheckedMemory *memory) {
  const ClusterCheck *check = cta->cluster->check;
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    const ReadClocks *reads = memory->reads[agent];
    if (!reads || agent / check->warps_per_cta == cta->rank) continue;
    uint32_t last = 0;
    for (uint32_t word = 0; word < memory->words; word++) {
      uint32_t time = reads->words[word] >> 1, since = access_since(check, states_of(memory, word));
      for (uint32_t i = 0; i < WORD_BYTES && reads->bytes; i++) {
        uint32_t of_byte = reads->bytes[word * WORD_BYTES + i] >> 1;
        time = of_byte > time ? of_byte : time;
      }
      if (time > since && time > last) last = time;
    }
    AccessRecord entry = {.kind = ENTRY_READ,
                          .agent = agent & AGENT_MOST,
                          .clock = last,
                          .in = order_site(check, last).in};
    if (last > check->start) look_at_entry(cta, &entry);
  }
}

void exit_note_remote_arrive(ClusterCheck *check, MbarrierCheck *barrier, uint32_t agent, int lane,
                             const Instruction *in) {
  if (!barrier->remote) barrier->remote = new_zeros(check->agents, sizeof *barrier->remote);
  HOLDS(barrier->remote[agent].clock <= clock_of(check, agent)); /* time only grows */
  barrier->remote[agent] = (RemoteArrive){in, clock_of(check, agent), barrier->phase, lane};
}

static void look_at_barrier(Cta *cta, const MbarrierCheck *barrier) {
  const ClusterCheck *check = cta->cluster->check;
  if (!barrier->remote || !barrier->valid || barrier->place == UINT32_MAX) return;
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    const RemoteArrive *arrive = &barrier->remote[agent];
    if (!arrive->in || cta_knows(check, cta->rank, barrier->place, arrive->phase + 1) ||
        cta_knows(check, cta->rank, agent, arrive->clock))
      continue;
    report_peer_exited(cta, agent, arrive->in, 1u << arrive->lane, "arrives at a barrier of");
  }
}

static void look_at_peers(Cta *cta) {
  const ClusterCheck *check = cta->cluster->check;
  if (check->cta_count == 1) return;
  const struct CheckedMemory *memory = &check->shared->memory[cta->rank];
  uint8_t *looked =
      new_zeros(check->shared->state_count, 1); /* so that each shared state is checked once */
  for (uint32_t word = 0; word < memory->words; word = states_next(memory, word)) {
    uint32_t number = states_of(memory, word);
    if (number >= PLAIN) {
      AccessRecord entry = {.kind = ENTRY_WRITE,
                            .agent = memory->writers[word] / LANES,
                            .clock = time_of_plain(number),
                            .in = order_site(check, time_of_plain(number)).in};
      look_at_entry(cta, &entry);
    }
    if (number < FIRST_STATE || number >= PLAIN || looked[number]) continue;
    looked[number] = 1;
    const WordState *state = state_at(check, number);
    for (unsigned i = 0; i < state->count; i++) look_at_entry(cta, &state->entries[i]);
  }
  free(looked);
  look_at_reads(cta, memory);
  for (uint32_t i = 0; i < check->shared->barrier_count; i++) {
    if (SHARED_RANK(check->shared->barriers[i]->address) == cta->rank) {
      look_at_barrier(cta, check->shared->barriers[i]);
    }
  }
}

/* ---- Its own operations ---- */

/* A store that was never waited for until the end of its block. */
static void report_unread_store(Warp *warp, const AsyncCheck *store) {
  const struct CheckedMemory *memory = &check_of(warp)->shared->memory[warp->cta->rank];
  LaneMask who = 1u << store->lane;
  const char *name = async_kind_name(store->kind);
  const char *luck = store->source_read ? " (it was read in time by luck)" : "";
  const Phrase passed = async_passed(store);
  if (!store->committed) {
    finding(
        warp, store->in, who, RULE(STORE_NEVER_COMMITTED),
        "the block has ended, and this %s was never committed: no wait can have waited for it to "
        "have read its source in shared memory%s.\n"
        "Put cp.async.bulk.commit_group after it, in the same thread, and then "
        "cp.async.bulk.wait_group.read 0.",
        name, luck);
  } else if (memory->idle_wait && memory->idle_wait != memory->own_wait &&
             memory->idle_thread != thread_of(warp, store->lane)) {
    finding(
        warp, store->in, who, RULE(WAIT_IN_ANOTHER_THREAD),
        "the block has ended, and no thread has waited for this %s to have read its source in "
        "shared memory%s: thread %u waited %s, but it had committed nothing, so there was "
        "nothing to wait for.\n"
        "Bulk groups belong to the thread that committed them: wait there, then __syncthreads().",
        name, luck, memory->idle_thread, place_of(memory->idle_wait).text);
  } else {
    finding(warp, store->in, who, RULE(EXIT_BEFORE_STORE_READ),
            "the block has ended, and no thread has waited for this %s to have read its source in "
            "shared memory%s.\n"
            "%s",
            name, luck,
            passed.text[0]
                ? passed.text
                : "The thread that issued it must wait for its group before the kernel ends: "
                  "cp.async.bulk.wait_group.read 0.");
  }
}

static void report_unknown_load(Warp *warp, const Instruction *in, int lane, AsyncKind kind,
                                const MbarrierCheck *barrier, const char *luck) {
  const ClusterCheck *check = check_of(warp);
  Phrase mistake = NO_PHRASE;
  for (uint32_t i = 0; barrier && !mistake.text[0] && i < check->agents; i++)
    mistake = wait_mistake(barrier, i, phrase("warp %u", i % check->warps_per_cta).text);
  finding(
      warp, in, 1u << lane, RULE(EXIT_WITH_COPY_IN_FLIGHT),
      "the block has ended while this %s was still in flight into shared memory%s.\n"
      "%s%sBefore the kernel ends, wait for every copy that it has issued, or do not issue those "
      "whose data nobody needs.",
      async_kind_name(kind), luck, mistake.text, mistake.text[0] ? " " : "");
}

static void look_at_operations(Cta *cta) {
  const ClusterCheck *check = cta->cluster->check;
  for (uint32_t w = 0; w < cta->warp_count; w++) {
    uint32_t agent = cta->rank * check->warps_per_cta + w;
    for (AsyncCheck *each = check->shared->of_warp[agent]; each; each = each->next_of_warp) {
      Warp *warp = &cta->warps[w];
      bool takes = each->kind == ASYNC_TENSOR_STORE || each->kind == ASYNC_BULK_STORE ||
                   each->kind == ASYNC_TENSOR_REDUCE || each->kind == ASYNC_BULK_REDUCE;
      if (takes && !each->read_waited_clock) {
        report_unread_store(warp, each);
      } else if (!each->landed && each->barrier) {
        report_unknown_load(warp, each->in, each->lane, each->kind,
                            past_barrier_of(check, each, cta->rank), "");
      }
    }
  }
  for (uint32_t i = 0; i < check->shared->barrier_count; i++) {
    const MbarrierCheck *barrier = check->shared->barriers[i];
    const LandedLoad *load = &barrier->landed;
    if (SHARED_RANK(barrier->address) != cta->rank || !load_unknown(check, barrier)) continue;
    report_unknown_load(&cta->warps[load->agent % check->warps_per_cta], load->in, load->lane,
                        load->kind, barrier, " (it has landed in time by luck)");
  }
}

/* ---- The block's memory is gone ---- */

/* Reads of bytes that nothing has written were no race. This is reported first. */
static void memory_is_gone(Cta *cta) {
  if (cta->cluster->check && !cta->cluster->launch->error) past_confirm_exited(cta);
}

/* Then the races among lanes (lane_reports.c), and last what peers and operations may still do there. */
static void block_exited(Cta *cta) {
  if (!cta->cluster->check || cta->cluster->launch->error) return;
  look_at_peers(cta);
  look_at_operations(cta);
}

static const Subscriber BEFORE_LANES = {.block_exited = memory_is_gone};
SUBSCRIBE(GONE_EVENTS, BEFORE_LANES)
static const Subscriber AFTER_LANES = {.block_exited = block_exited};
SUBSCRIBE(EXIT_EVENTS, AFTER_LANES)
