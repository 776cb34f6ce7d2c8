/* lane_reports.c: races between lanes of one warp, kept until it is known whether warps race
 * for the same reason, and reported when their block ends. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker/lanes/lane_access.h"
#include "checker/doubts.h"

struct LaneRaces *lane_races_of(ClusterCheck *check) {
  if (!check->lane_races) check->lane_races = calloc(1, sizeof *check->lane_races);
  if (!check->lane_races) out_of_memory();
  return check->lane_races;
}

/* The number of a new vector, all 0. */
/* The last write of the word, or read, by the agent: where and when. NULL: not known. */
const Instruction *lane_last_write(const LaneAccess *now, uint32_t word, uint32_t *time) {
  uint32_t number = states_of(now->memory, word);
  *time = 0;
  if (number >= PLAIN) {
    *time = time_of_plain(number);
  } else if (number >= FIRST_STATE) {
    const WordState *state = state_at(now->check, number);
    for (unsigned i = 0; i < state->count; i++) {
      const AccessRecord *entry = &state->entries[i];
      if (entry->agent != now->agent) continue;
      if (entry->kind == ENTRY_ASYNC_WRITE) return entry->operation->in;
      if (entry->kind == ENTRY_WRITE && entry->clock > *time) *time = entry->clock;
    }
  }
  return *time ? order_site(now->check, *time).in : NULL;
}

const Instruction *lane_last_read(const LaneAccess *now, uint32_t agent, uint32_t word,
                                  uint32_t *time) {
  const ReadClocks *reads = now->memory->reads[agent];
  *time = reads ? reads->words[word] >> 1 : 0;
  for (uint32_t i = 0; i < WORD_BYTES && reads && reads->bytes; i++) {
    uint32_t read = reads->bytes[word * WORD_BYTES + i] >> 1;
    *time = read > *time ? read : *time;
  }
  return *time ? order_site(now->check, *time).in : NULL;
}

/* Asked before a text is made: a race in a loop shows at every access. */
bool lane_race_is_kept(const LaneAccess *now, const Instruction *other, const char *rule) {
  const struct LaneRaces *all = lane_races_of(now->check);
  for (uint32_t i = 0; i < all->count; i++)
    if (!strcmp(all->races[i].what.rule, rule) && all->races[i].warp->cta == now->warp->cta &&
        are_two_lines(now->in, other, all->races[i].in, all->races[i].what.other))
      return true;
  return all->count == LANE_RACES_KEPT;
}

Finding lane_finding(const LaneAccess *now, uint32_t at, const char *rule,
                     const Instruction *other) {
  return (Finding){.rule = rule,
                   .other = other,
                   .memory = ABOUT_SHARED,
                   .rank = (uint8_t)now->rank,
                   .bytes = 1u << now->shadow->shift,
                   .address = at << now->shadow->shift};
}

void lane_keep_race(const LaneAccess *now, bool tried, LaneMask lanes, const Finding *what,
                    const char *format, ...) {
  struct LaneRaces *all = lane_races_of(now->check);
  LaneRace *race = &all->races[all->count++];
  *race = (LaneRace){now->warp, now->in, lanes, *what, tried, ""};
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(race->text, sizeof race->text, format, arguments);
  va_end(arguments);
}

void lanes_note_race(ClusterCheck *check, const Instruction *in, const Instruction *other) {
  struct LaneRaces *all = lane_races_of(check);
  if (all->pair_count == LANE_RACES_KEPT) return;
  all->pairs[all->pair_count][0] = in;
  all->pairs[all->pair_count++][1] = other;
}

void lanes_report(Cta *cta) {
  struct LaneRaces *all = cta->cluster->check->lane_races;
  if (!all) return;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < all->count; i++) {
    LaneRace *race = &all->races[i];
    bool of_warps = false;
    if (race->warp->cta != cta) {
      all->races[kept++] = *race;
      continue;
    }
    for (uint32_t k = 0; k < all->pair_count; k++)
      of_warps |= are_two_lines(race->in, race->what.other, all->pairs[k][0], all->pairs[k][1]);
    if (!of_warps)
      doubt_report(race->tried, race->warp, race->in, race->lanes, &race->what, "%s", race->text);
  }
  all->count = kept;
}

const char *lane_place_text(const LaneAccess *now, uint32_t at, char *text, size_t capacity) {
  uint32_t offset = at << now->shadow->shift;
  if (now->check->cta_count > 1)
    snprintf(text, capacity, "shared memory at offset 0x%x of rank %u", offset, now->rank);
  else
    snprintf(text, capacity, "shared memory at offset 0x%x", offset);
  return text;
}

/* May the race be held back until a trial has shown whether it matters? Not if a copy takes part. reading:
 * the lanes that read, if one of the two accesses is a read. */
static bool may_be_tried(const LaneAccess *now, uint32_t word, bool other_wrote, LaneMask reading,
                         const Instruction *past, uint32_t time) {
  if (!now->kind || (past && time == 0)) return false;
  if (!now->writes) {
    uint32_t read_time = order_time(now->check, now->agent, now->in, now->strong);
    return race_of_read(now->warp, now->rank, word, now->agent, reading, now->order->stamp,
                        read_time, now->in);
  }
  if (other_wrote) return race_of_stores(now->warp, now->rank, word * WORD_BYTES, WORD_BYTES);
  return race_of_read(now->warp, now->rank, word, now->agent, reading, 0, time, past);
}

/* The others have written (or read) there, and nothing orders that before what `lane` does now. */
void lane_race(const LaneAccess *now, uint32_t at, int lane, LaneMask others, bool other_wrote) {
  int other = first_lane(others);
  char place[96], where[160] = "earlier";
  uint32_t time, word = (at << now->shadow->shift) / WORD_BYTES;
  if (swaps_allow_lane(now, at, other_wrote)) return;
  const Instruction *past = other_wrote ? lane_last_write(now, word, &time)
                                        : lane_last_read(now, now->agent, word, &time);
  uint32_t met_lane = now->order->met[lane], met_other = now->order->met[other];
  bool met = time && time <= met_lane && time <= met_other;
  if (met && !other_wrote && now->kind && now->writes &&
      lane_value_depends(now->warp, past, now->in, lane, other))
    return;
  bool tried = may_be_tried(now, word, other_wrote, other_wrote ? 1u << lane : others, past, time);
  if (lane_race_is_kept(now, past, met ? LANE_RULE_MET : LANE_RULE_RACE)) return;
  if (past) place_text(past, where, sizeof where);
  lane_place_text(now, at, place, sizeof place);
  const char *verb = now->kind     ? now->writes ? "writes" : "reads"
                     : now->writes ? "starts a copy into"
                                   : "copies from";
  const char *verbed = other_wrote ? "wrote" : "read";
  uint32_t thread = now->warp->index * LANES + (uint32_t)other;
  Finding what = lane_finding(now, at, met ? LANE_RULE_MET : LANE_RULE_RACE, past);
  what.unordered = true;
  if (met) {
    char met_where[160];
    place_text(now->order->met_at, met_where, sizeof met_where);
    lane_keep_race(
        now, tried, 1u << lane, &what,
        "%s %s, which thread %u of the same warp %s %s, and nothing orders the two.\n"
        "Between them the lanes have met (%s), but a shuffle, a vote or the like orders no "
        "memory, and the compiler may move accesses across it. Put __syncwarp() between the "
        "two.",
        verb, place, thread, verbed, where, met_where);
    return;
  }
  lane_keep_race(
      now, tried, 1u << lane, &what,
      "%s %s, which thread %u of the same warp %s %s, and nothing orders the two.\n"
      "%s",
      verb, place, thread, verbed, where,
      now->strong && !other_wrote
          ? "Only one of them is atomic or volatile. Put __syncwarp() between them."
          : "The lanes of a warp do not run in step: put __syncwarp() between the two, for "
            "all lanes that take part.");
}
