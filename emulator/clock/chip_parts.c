/* chip_parts.c: L2 and device memory of the modelled chip (CLOCK.md). */
#include "clock/chip_parts.h"

#include <string.h>

#include "base/fault.h"

enum {
  LINE_BYTES = 128,
  SECTOR_BYTES = 32,
  WAYS = 16,
  SMS_OF_GROUP = 6,
  STORE_SECTORS = 8 /* of a warp's store in measure_load */
};

const ChipParameters chip_parameters = {
#define CLOCK(name, value) .name = (value),
#include "clock/h200.def"
#undef CLOCK
};

/* How many stores of its threads an SM can have on their way: as many as it waits for when a block
 * ends. When all SMs store at once, each gets a share of L2 in proportion to its slots; these give the
 * times of the first, the median and the last SM that measure_load found. Which SM is fast is not known: the pairs are shuffled. */
static uint32_t store_slots_of(uint32_t sm) {
  enum { PAIRS = CHIP_MULTIPROCESSORS / 2, SHUFFLE = 29 };
  const ChipParameters *p = &chip_parameters;
  const double rank = (double)(sm / 2 * SHUFFLE % PAIRS) / (PAIRS - 1);
  const double clocks =
      rank < 0.5 ? p->stores_least + (p->stores_median - p->stores_least) * rank * 2
                 : p->stores_median + (p->stores_most - p->stores_median) * (rank * 2 - 1);
  const double most = p->store_drain / (STORE_SECTORS * p->store_sector);
  const uint32_t slots = (uint32_t)(most * p->stores_least / clocks + 0.5);
  return slots < 1 ? 1 : slots > MOST_STORES ? MOST_STORES : slots;
}

Chip *chip_begin(void) {
  static Chip *chip;
  if (!chip) {
    chip = new_zeros(1, sizeof *chip);
    chip->line_sets = (uint32_t)(chip_parameters.l2_bytes / (LINE_BYTES * WAYS));
    chip->lines = new_zeros((size_t)chip->line_sets * WAYS, sizeof *chip->lines);
  }
  memset(chip->sm, 0, sizeof chip->sm);
  chip->l2 = chip->l2_read = chip->l2_written = chip->dram = 0;
  chip->use = (ChipUse){.l2_busy = 0};
  for (uint32_t i = 0; i < CHIP_MULTIPROCESSORS; i++) chip->sm[i].store_slots = store_slots_of(i);
  for (size_t i = 0; i < (size_t)chip->line_sets * WAYS; i++)
    chip->lines[i].ready = 0, chip->lines[i].answered = -1e9, chip->lines[i].askers = 0;
  return chip;
}

/* The line's place in L2; a new one gets the place of the least recently used. */
static L2Line *find_line(Chip *chip, uint64_t line, bool *found) {
  const uint64_t hash = line * 0x9e3779b97f4a7c15ull >> 20;
  L2Line *set = &chip->lines[hash % chip->line_sets * WAYS], *oldest = set;
  const uint32_t now = ++chip->clock_hand;
  for (L2Line *at = set; at < set + WAYS; at++) {
    if (at->tag == line + 1) {
      *found = true;
      at->used = now;
      return at;
    }
    if (now - at->used > now - oldest->used) oldest = at;
  }
  *found = false;
  oldest->used = now;
  return oldest;
}

typedef struct {
  double read_bytes, dram_bytes, ready;
  /* of L2; a sector that is stored in part takes longer than a whole one */
  double read_clocks, write_clocks;
  bool missed;
} Demand;

static void read_line(Chip *chip, double now, uint32_t group, uint64_t line, uint32_t bytes,
                      Demand *demand) {
  bool found;
  L2Line *at = find_line(chip, line, &found);
  if (!found) {
    if (at->tag && at->dirty) demand->dram_bytes += LINE_BYTES;
    demand->dram_bytes += bytes;
    demand->read_bytes += bytes;
    demand->missed = true;
    *at = (L2Line){.tag = line + 1, .ready = -1, .answered = -1e9, .used = at->used};
  }
  if (at->ready > demand->ready) demand->ready = at->ready;
  if (now - at->answered > chip_parameters.l2_share_window) at->askers = 0;
  if (at->askers & group) {
    chip->use.shared_bytes += bytes;
  } else {
    demand->read_bytes += bytes, demand->read_clocks += bytes / chip_parameters.l2_rate;
    /* When L2 is busy, the answer waits, and whoever asks meanwhile shares it. */
    const double queue = chip->l2_read > chip->l2 ? chip->l2_read : chip->l2;
    at->answered = (queue > now ? queue : now) + demand->read_clocks;
  }
  at->askers |= group;
}

static void write_line(Chip *chip, double now, uint64_t line, uint32_t bytes, Demand *demand) {
  bool found;
  L2Line *at = find_line(chip, line, &found);
  if (!found) {
    if (at->tag && at->dirty) demand->dram_bytes += LINE_BYTES;
    *at = (L2Line){.tag = line + 1, .ready = now, .answered = -1e9, .used = at->used};
  }
  at->dirty = true;
  if (bytes % SECTOR_BYTES)
    demand->write_clocks += (bytes / SECTOR_BYTES + 1) * chip_parameters.l2_store_sector;
  else
    demand->write_clocks += bytes / chip_parameters.l2_store_rate;
}

static void each_line(Chip *chip, double now, uint32_t sm, const ClockRun *runs, uint32_t count,
                      bool write, Demand *demand, double ready) {
  const uint32_t group = 1u << sm / SMS_OF_GROUP;
  for (const ClockRun *run = runs; run < runs + count; run++)
    for (uint32_t i = 0; i < run->count; i++) {
      uint64_t at = run->address + run->step * i, end = at + run->bytes;
      if (!write) at -= at % SECTOR_BYTES;
      while (at < end) {
        const uint64_t line = at / LINE_BYTES;
        uint64_t stop = (line + 1) * LINE_BYTES;
        if (stop > end) stop = write ? end : (end + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES;
        if (ready >= 0) { /* the second time: lines that were missed now have their time */
          bool found;
          L2Line *missed = find_line(chip, line, &found);
          if (found && missed->ready < 0) missed->ready = ready;
        } else if (write) {
          write_line(chip, now, line, (uint32_t)(stop - at), demand);
        } else {
          read_line(chip, now, group, line, (uint32_t)(stop - at), demand);
        }
        at = stop;
      }
    }
}

/* Occupies a part of L2 from `now` on, or from when it is free; returns when it is free again. */
static double occupy_part(double *part, double now, double clocks) {
  if (clocks <= 0) return now;
  *part = (*part < now ? now : *part) + clocks;
  return *part;
}

/* Reads and writes have ways of their own, which overlap only in part. */
static double occupy_l2(Chip *chip, double now, const Demand *demand) {
  const double together = (demand->read_clocks + demand->write_clocks) * chip_parameters.l2_overlap;
  const double read = occupy_part(&chip->l2_read, now, demand->read_clocks);
  const double written = occupy_part(&chip->l2_written, now, demand->write_clocks);
  const double both = occupy_part(&chip->l2, now, together);
  chip->use.l2_busy += together;
  return read > written ? (read > both ? read : both) : written > both ? written : both;
}

double chip_rows(Chip *chip, double now, uint32_t sm, const ClockRun *runs, uint32_t count,
                 bool write) {
  const ChipParameters *p = &chip_parameters;
  Demand demand = {.ready = 0};
  each_line(chip, now, sm, runs, count, write, &demand, -1);
  double ready = occupy_l2(chip, now, &demand);
  chip->use.l2_read_bytes += demand.read_bytes;
  if (demand.ready > ready) ready = demand.ready;
  if (demand.dram_bytes > 0) {
    if (chip->dram < now) chip->dram = now;
    chip->dram += demand.dram_bytes / p->dram_rate;
    chip->use.dram_bytes += demand.dram_bytes;
    if (demand.missed) {
      const double came = chip->dram + p->dram_load_latency - p->l2_load_latency;
      each_line(chip, now, sm, runs, count, write, NULL, came);
      if (came > ready) ready = came;
    }
  }
  return ready;
}

RowCount chip_count(const ClockRun *runs, uint32_t count) {
  RowCount sum = {0, 0};
  for (const ClockRun *run = runs; run < runs + count; run++) {
    const uint64_t first = run->address, last = run->address + run->bytes - 1;
    sum.sectors += (uint32_t)(last / SECTOR_BYTES - first / SECTOR_BYTES + 1) * run->count;
    sum.lines += (uint32_t)(last / LINE_BYTES - first / LINE_BYTES + 1) * run->count;
  }
  return sum;
}
