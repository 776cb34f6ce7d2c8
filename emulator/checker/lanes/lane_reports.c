/* lane_reports.c: races between lanes of one warp, kept until it is known whether warps race
 * for the same reason, and reported when their block ends. */
#include "base/holds.h"
#include "checker/lanes/lane_access.h"
#include "trial/trial.h"

struct LaneRaces *lane_races_of(ClusterCheck *check) {
  if (!check->lanes->races) check->lanes->races = new_zeros(1, sizeof *check->lanes->races);
  return check->lanes->races;
}

/* Asked before a text is made: a race in a loop shows at every access. */
bool lane_race_is_kept(const LaneAccess *now, const Instruction *other, const Rule *rule) {
  const struct LaneRaces *all = lane_races_of(now->check);
  for (uint32_t i = 0; i < all->count; i++)
    if (all->races[i].warp->cta == now->warp->cta &&
        are_two_lines(now->in, other, all->races[i].in, all->races[i].what.other) &&
        all->races[i].what.rule == rule)
      return true;
  return all->count == LANE_RACES_KEPT;
}

Finding lane_finding(const LaneAccess *now, uint32_t at, const Rule *rule,
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
  HOLDS(all->count < LANE_RACES_KEPT && now->check->lanes_checked);
  LaneRace *race = &all->races[all->count++];
  *race = (LaneRace){now->warp, now->in, lanes, *what, tried, ""};
  PRINT_ARGUMENTS(race->text, sizeof race->text, format);
}

void lanes_report(Cta *cta) {
  const ClusterCheck *check = cta->cluster->check;
  struct LaneRaces *all = check->lanes ? check->lanes->races : NULL;
  if (!all) return;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < all->count; i++) {
    LaneRace *race = &all->races[i];
    if (race->warp->cta != cta) {
      all->races[kept++] = *race;
      continue;
    }
    if (!shared_have_raced(check, race->in, race->what.other))
      trial_doubt(race->tried, race->warp, race->in, race->lanes, &race->what, "%s", race->text);
  }
  all->count = kept;
}

Phrase lane_place(const LaneAccess *now, uint32_t at) {
  return phrase("shared memory at offset 0x%x%s", at << now->shadow->shift,
                rank_phrase(now->check->cta_count, now->rank).text);
}

/* May the race be held back until a trial has shown whether it matters? Not if a copy takes part. reading:
 * the lanes that read, if one of the two accesses is a read. */
static bool may_be_tried(const LaneAccess *now, uint32_t word, bool other_wrote, LaneMask reading,
                         const Instruction *past, uint32_t time) {
  const Cluster *cluster = now->warp->cta->cluster;
  if (!now->kind || (past && time == 0)) return false;
  if (now->writes && other_wrote)
    return trial_changes_stored(cluster, now->rank, word * WORD_BYTES, WORD_BYTES);
  if (!now->writes) time = order_time(now->check, now->agent, now->in, now->strong);
  return trial_gives_others(
      cluster, (RacingRead){.rank = now->rank,
                            .word = word,
                            .agent = now->agent,
                            .lanes = reading,
                            .stamp = now->writes ? 0 : lanes_stamp(now->check, now->agent),
                            .time = order_since_begin(now->check, time),
                            .in = now->writes ? past : now->in});
}

/* Has one store written all of the word? */
static bool is_whole_store(const LaneShadow *shadow, uint32_t at) {
  uint32_t parts = 1u << (WORD_SHIFT - shadow->shift), first = at / parts * parts;
  for (uint32_t i = 1; i < parts; i++)
    if (shadow->writes[first + i] != shadow->writes[first]) return false;
  return true;
}

/* May these two accesses come in any order, because one is an atomic of 8 or 16 bits beside the other's bytes
 * (byte_atomics.c)? other_wrote: the past access. */
static bool swaps_allow(const LaneAccess *now, uint32_t at, bool other_wrote) {
  const LaneShadow *shadow = now->shadow;
  uint32_t offset = at << shadow->shift, size = 1u << shadow->shift;
  if (!now->kind || size == WORD_BYTES) return false;
  bool past_strong = other_wrote && (shadow->writes[at] & RECORD_STRONG);
  if (now->strong == past_strong) return false;
  if (now->strong && !now->writes) return now->bytes == WORD_BYTES && !is_whole_store(shadow, at);
  return swaps_keep(now->check, now->rank, offset / WORD_BYTES,
                    ((1u << size) - 1) << offset % WORD_BYTES & FULL_WORD);
}

/* The others have written (or read) there, and nothing orders that before what `lane` does now. */
void lane_race(const LaneAccess *now, uint32_t at, int lane, LaneMask others, bool other_wrote) {
  int other = first_lane(others);
  uint32_t word = (at << now->shadow->shift) / WORD_BYTES;
  if (swaps_allow(now, at, other_wrote)) return;
  const SharedUse last = shared_last(now->check, now->rank, word, now->agent, other_wrote);
  const Instruction *past = last.in;
  const uint32_t time = last.time;
  uint32_t met_lane = now->order->met[lane], met_other = now->order->met[other];
  bool met = time && time <= met_lane && time <= met_other;
  if (met && !other_wrote && now->kind && now->writes &&
      lane_value_depends(now->warp, past, now->in, lane, other))
    return;
  bool tried = may_be_tried(now, word, other_wrote, other_wrote ? 1u << lane : others, past, time);
  if (lane_race_is_kept(now, past, met ? RULE(LANES_MET_WITHOUT_ORDER) : RULE(LANE_RACE))) return;
  const Phrase place = lane_place(now, at), where = past ? place_of(past) : phrase("earlier");
  const char *verb = now->kind     ? now->writes ? "writes" : "reads"
                     : now->writes ? "starts a copy into"
                                   : "copies from";
  const char *verbed = other_wrote ? "wrote" : "read";
  uint32_t thread = now->warp->index * LANES + (uint32_t)other;
  Finding what = lane_finding(now, at, met ? RULE(LANES_MET_WITHOUT_ORDER) : RULE(LANE_RACE), past);
  what.unordered = true;
  if (met) {
    lane_keep_race(
        now, tried, 1u << lane, &what,
        "%s %s, which thread %u of the same warp %s %s, and nothing orders the two.\n"
        "Between them the lanes have met (%s), but a shuffle, a vote or the like orders no memory, "
        "and the compiler may move accesses across it. Put __syncwarp() between the two.",
        verb, place.text, thread, verbed, where.text, place_of(now->order->met_at).text);
    return;
  }
  lane_keep_race(
      now, tried, 1u << lane, &what,
      "%s %s, which thread %u of the same warp %s %s, and nothing orders the two.\n"
      "%s",
      verb, place.text, thread, verbed, where.text,
      now->strong && !other_wrote
          ? "Only one of them is atomic or volatile. Put __syncwarp() between them."
      : now->in->traits & COPY_ENGINE && now->warp->cta->warp_count > 1
          ? "Put __syncthreads() between the two, or __syncwarp() if only this warp uses these "
            "bytes: the lanes of a warp do not run in step, either."
          : "The lanes of a warp do not run in step: put __syncwarp() between the two, for "
            "all lanes that take part.");
}
