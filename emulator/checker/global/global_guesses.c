/* global_guesses.c: plain loads that race with atomics, unless a compare-and-swap checks the value.
 *
 * A warp reads a word by a plain load, computes a new value from it, and tries a compare-and-swap.
 * Others change the word by atomics, so the accesses race by the PTX memory model. But the swap
 * shows whether the value was right, as in the CUDA guide's atomicAdd() for doubles. So such a race
 * is kept, and reported when the launch ends if the warp has tried no swap there. */
#include <stdlib.h>

#include "base/fault.h"
#include "checker/global/global_state.h"

enum { GUESSES_MOST = 128 };

typedef struct {
  bool open;
  uint64_t first, end;
  uint32_t cluster, issuer;
  const Instruction *other; /* the access with which it races */
  KeptFinding finding;
} Guess;

struct GlobalGuesses {
  uint32_t open, used; /* used: places in the table, open or not */
  Guess all[GUESSES_MOST];
};

static Guess *find_guess(struct GlobalGuesses *all, uint64_t first, uint64_t end, uint32_t cluster,
                         uint32_t issuer) {
  for (uint32_t i = 0; i < all->used; i++) {
    Guess *guess = &all->all[i];
    if (guess->open && guess->first < end && first < guess->end && guess->cluster == cluster &&
        guess->issuer == issuer)
      return guess;
  }
  return NULL;
}

/* Before an atomic of 8 or 16 bits, libcu++ loads the word around it, and a plain store may change the
 * other bytes. */
static bool guesses_neighbours(const GlobalNow *now, const GlobalAccess *guess,
                               const GlobalAccess *store) {
  return now->bytes < WORD_BYTES && guess->size == WORD_BYTES && guess->reach != REACH_PLAIN &&
         store->reach == REACH_PLAIN &&
         !((guess->flags | store->flags) & (GLOBAL_ASYNC | GLOBAL_UPDATES));
}

/* Of atomics and plain loads: which one has guessed? */
const GlobalAccess *global_guesser(const GlobalNow *now, const GlobalAccess *past,
                                   bool past_reads) {
  const GlobalAccess *own = &now->access;
  if (!now->own || past->operation != own->operation) return NULL;
  bool reads = now->kind == ACCESS_READ;
  const GlobalAccess *guess = reads ? own : past, *atomic = reads ? past : own;
  if (reads != past_reads && guesses_neighbours(now, guess, atomic)) return guess;
  if (reads == past_reads || guess->reach != REACH_PLAIN || !(atomic->flags & GLOBAL_UPDATES) ||
      atomic->reach < REACH_GPU ||
      ((guess->flags | atomic->flags) & (GLOBAL_ASYNC | GLOBAL_NON_COHERENT)))
    return NULL;
  return guess;
}

void global_guess(const GlobalNow *now, const GlobalAccess *guesser) {
  GlobalLaunch *launch = now->launch;
  HOLD_LOCK(&launch->lock);
  struct GlobalGuesses *all = launch->guesses;
  if (!all) {
    all = new_zeros(1, sizeof *all);
    __atomic_store_n(&launch->guesses, all, __ATOMIC_RELEASE);
  }
  if (all->open < GUESSES_MOST && !find_guess(all, now->address, now->address + now->bytes,
                                              guesser->cluster, guesser->issuer)) {
    uint32_t place = 0;
    while (place < all->used && all->all[place].open) place++;
    if (place == all->used) all->used++;
    Guess *guess = &all->all[place];
    guess->open = true;
    guess->first = now->address;
    guess->end = now->address + now->bytes;
    guess->cluster = guesser->cluster;
    guess->issuer = guesser->issuer;
    guess->other = now->past.in;
    global_report_later(now, &guess->finding);
    all->open++;
  }
}

void global_guess_checked(const GlobalNow *now, LaneMask mask, const uint64_t *addresses) {
  GlobalLaunch *launch = now->launch;
  HOLD_LOCK(&launch->lock);
  struct GlobalGuesses *all = launch->guesses;
  FOR_LANES(lane, all && all->open ? mask : 0) {
    uint64_t first = addresses[lane], end = first + now->lane_bytes;
    Guess *guess;
    while ((guess = find_guess(all, first, end, now->access.cluster, now->access.issuer))) {
      kept_finding_free(&guess->finding);
      guess->open = false;
      all->open--;
    }
  }
}

void global_guesses_report(GlobalLaunch *launch) {
  struct GlobalGuesses *all = launch->guesses;
  for (uint32_t i = 0; all && i < all->used; i++) {
    Guess *guess = &all->all[i];
    if (!guess->open) continue;
    global_lanes_note_race(launch, guess->finding.in, guess->other);
    kept_finding_report(&guess->finding);
    kept_finding_free(&guess->finding);
  }
  free(all);
  launch->guesses = NULL;
}
