/* repeat.c: recognises launches that would only repeat an earlier one (repeat.h).
 *
 * A launch is known by its kernel, parameters, grid, block, cluster and shared memory. What it does is
 * determined by these and by the memory that it reads. When a launch has run, the checker's shadow
 * says which memory it has touched. A later launch can be skipped in two cases.
 *
 * It would leave all of this memory as it is. That is known if the earlier one has written nothing that
 * it had read before, so that with its results in place it computes the same again; or if the content
 * was the same before it ran and after.
 *
 * Or what it reads is the same as before the earlier one, and a copy of that one's results was kept:
 * these are put in place. If the earlier one has changed what it had read, all that it has touched
 * counts as read.
 *
 * A launch that cannot be skipped may run without being checked: if memory does not decide what its kernel
 * accesses (course.c), an earlier one like it was all right, and what it reads has been written.
 *
 * Contents are compared by a fingerprint that includes which bytes have been written at all.
 *
 * A launch that also depends on something else, or that does something besides writing memory, always
 * runs: see is_repeatable and the callers of launch_is_unique and launch_prints. So does one that a
 * report about global memory may come from: because the launch before had such findings, or because
 * something that is not ordered before it has touched its memory. All other findings it would have once
 * more, so they are counted again. */
#include "machine/repeat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/settings.h"
#include "base/texture.h"
#include "base/written.h"
#include "machine/course.h"

enum { KNOWN_MOST = 64, MISSES_BEFORE_REST = 4, REST_MOST = 64 };
/* Copies of results: of all launches, and of one that has not come again so far. */
static const uint64_t COPIES_MOST = 512ull << 20, FIRST_COPY_MOST = 16ull << 20;

typedef struct {
  const Function *kernel; /* NULL: the entry is free */
  Index3 grid, block, cluster;
  uint32_t dynamic_shared_bytes, parameters_missing;
  bool cooperative;
  size_t parameter_bytes;
  uint8_t *parameters;
} LaunchKey;

typedef enum { COURSE_UNKNOWN, COURSE_FIXED, COURSE_VARIES } KnownCourse;

typedef struct {
  LaunchKey key;
  TouchedMemory *touched;  /* NULL: the launch cannot be skipped */
  FindingCounts *findings; /* that it has had; NULL: none */
  bool reads_textures;
  bool right;         /* nothing was wrong with it, and no value in memory has decided that */
  KnownCourse course; /* only looked at if it is right */
  bool stays;         /* with this content the launch leaves memory as it is */
  uint64_t content;
  uint8_t *results;     /* a copy of what it has written; NULL: none */
  uint64_t needs;       /* the content of its input before these results */
  bool results_changed; /* last time the results had to be put in place */
  uint32_t misses;      /* how often in a row the content was another one */
  uint32_t rest;        /* launches for which it is not looked at */
  uint64_t used;
} KnownLaunch;

/* Launches begin and end under the runtime's lock. */
static KnownLaunch known[KNOWN_MOST];
static uint64_t uses, begun, launched, skipped, unchecked, copied_bytes;
static uint32_t running;

/* ---- The table ---- */

static bool same_index(Index3 a, Index3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

static bool is_like(const LaunchKey *key, const Launch *launch) {
  return key->kernel == launch->kernel && same_index(key->grid, launch->grid) &&
         same_index(key->block, launch->block) && same_index(key->cluster, launch->cluster) &&
         key->dynamic_shared_bytes == launch->dynamic_shared_bytes &&
         key->parameters_missing == launch->parameters_missing &&
         key->cooperative == launch->cooperative &&
         key->parameter_bytes == launch->parameter_bytes &&
         (key->parameter_bytes == 0 ||
          !memcmp(key->parameters, launch->parameters, key->parameter_bytes));
}

static KnownLaunch *find_known(const Launch *launch) {
  for (int i = 0; i < KNOWN_MOST; i++)
    if (known[i].key.kernel && is_like(&known[i].key, launch)) return &known[i];
  return NULL;
}

static void drop_results(KnownLaunch *entry) {
  if (!entry->results) return;
  copied_bytes -= entry->touched->output_bytes;
  free(entry->results);
  entry->results = NULL;
}

static void set_touched(KnownLaunch *entry, TouchedMemory *touched) {
  drop_results(entry);
  free(entry->findings);
  entry->findings = NULL;
  if (entry->touched != touched) check_touched_free(entry->touched);
  entry->touched = touched;
}

/* In the place of the one that was used longest ago. NULL: out of memory. */
static KnownLaunch *add_known(const Launch *launch) {
  KnownLaunch *oldest = &known[0];
  for (int i = 1; i < KNOWN_MOST; i++)
    if (known[i].used < oldest->used) oldest = &known[i];
  set_touched(oldest, NULL);
  free(oldest->key.parameters);
  *oldest = (KnownLaunch){.used = ++uses};
  uint8_t *parameters = malloc(launch->parameter_bytes + 1);
  if (!parameters) return NULL;
  if (launch->parameter_bytes > 0) {
    memcpy(parameters, launch->parameters, launch->parameter_bytes);
  }
  oldest->key = (LaunchKey){.kernel = launch->kernel,
                            .grid = launch->grid,
                            .block = launch->block,
                            .cluster = launch->cluster,
                            .dynamic_shared_bytes = launch->dynamic_shared_bytes,
                            .parameters_missing = launch->parameters_missing,
                            .cooperative = launch->cooperative,
                            .parameter_bytes = launch->parameter_bytes,
                            .parameters = parameters};
  return oldest;
}

/* ---- The content of memory ---- */

static uint64_t content_of_span(uint64_t before, uint64_t first, uint64_t end) {
  uint64_t content = fingerprint(before, (const void *)(uintptr_t)first, end - first);
  if (!written_is_watched(first)) return content;
  uint64_t from = (first - written_map.first) / 64, to = (end - written_map.first + 63) / 64;
  return fingerprint(content, written_map.bits + from, (to - from) * sizeof *written_map.bits);
}

/* Constant memory is not in the checker's shadow, and there is little of it. */
static void add_constants(const Allocation *place, void *context) {
  uint64_t *content = context;
  if (!place->read_only || place->kind != MEMORY_OF_DEVICE || place->absent) return;
  *content = fingerprint(*content, &place->first, sizeof place->first);
  *content = content_of_span(*content, place->first, place->end);
}

/* Which texels a launch has read is not known, so all textures count. */
static void add_texture(uint64_t handle, const Texture *texture, void *context) {
  uint64_t *content = context;
  *content = fingerprint(*content, &handle, sizeof handle);
  *content = fingerprint(*content, texture, sizeof *texture);
  if (!texture_has_memory(texture)) return;
  *content = content_of_span(*content, texture->first, texture->first + texture_bytes(texture));
}

static bool is_there(const TouchedSpan *span) {
  const Allocation *place = memory_find(span->first);
  return place && !place->absent && place->kind == MEMORY_OF_DEVICE &&
         place->first == span->place && place->end == span->place_end;
}

static bool all_there(const TouchedSpans *spans) {
  for (size_t i = 0; i < spans->count; i++)
    if (!is_there(&spans->spans[i])) return false;
  return true;
}

/* False: some of this memory has been freed. If other memory has been allocated in its place since, its
 * content counts, like that of any other. */
static bool find_content(const TouchedSpans *spans, bool textures, uint64_t *content) {
  *content = 0;
  for (size_t i = 0; i < spans->count; i++) {
    const TouchedSpan *span = &spans->spans[i];
    if (!is_there(span)) return false;
    *content = content_of_span(*content, span->first, span->end);
  }
  memory_each(add_constants, content);
  if (textures) texture_each(add_texture, content);
  return true;
}

typedef struct {
  const TouchedMemory *touched;
  bool writes;
} WrittenTextures;

static void find_written_texture(uint64_t handle, const Texture *texture, void *context) {
  (void)handle;
  WrittenTextures *all = context;
  all->writes |=
      check_touched_writes(all->touched, texture->first, texture->first + texture_bytes(texture));
}

/* ---- What a user may ask ---- */

static void say_how_many(void) {
  static bool said;
  if (said) return;
  said = true;
  fprintf(stderr,
          "emulator: %llu of %llu kernel launches did not run, because each would have repeated an "
          "earlier one\n",
          (unsigned long long)skipped, (unsigned long long)launched);
  if (unchecked)
    fprintf(stderr,
            "emulator: %llu kernel launches ran without being checked, because each makes the same "
            "accesses as an earlier one\n",
            (unsigned long long)unchecked);
}

static void count_launch(void) {
  if (launched++ || !settings()->count_repetitions) return;
  atexit(say_how_many);
  report_last_words = say_how_many; /* findings end the program without the others' last words */
}

/* ---- Launches ---- */

bool repeat_is_wanted(void) {
  const Settings *all = settings();
  bool in_order = all->schedule == SCHEDULE_LATE || all->schedule == SCHEDULE_EARLY;
  return all->skip_repetitions && in_order && all->check && all->check_global &&
         !all->record_file && !all->count && !all->clock && !all->explore;
}

/* Is its input what it was before its results were copied, and the memory for them still there? */
static bool has_results_for(const KnownLaunch *entry) {
  uint64_t content;
  return entry->results && all_there(&entry->touched->all) &&
         find_content(&entry->touched->inputs, entry->reads_textures, &content) &&
         content == entry->needs;
}

typedef enum { REPEATS_NOTHING, REPEATS_IN_PLACE, REPEATS_RESULTS } Repeats;

/* A fingerprint of all that it touches costs time, and of a launch whose results are overwritten each
 * time its input is enough. */
static Repeats repeats(const KnownLaunch *entry, Repetition *own) {
  bool results_first = entry->results && (entry->results_changed || !entry->stays);
  if (results_first && has_results_for(entry)) return REPEATS_RESULTS;
  uint64_t content;
  own->before_known = find_content(&entry->touched->all, entry->reads_textures, &content);
  if (!own->before_known) return REPEATS_NOTHING;
  own->before = content;
  if (entry->stays && content == entry->content) return REPEATS_IN_PLACE;
  return !results_first && has_results_for(entry) ? REPEATS_RESULTS : REPEATS_NOTHING;
}

static bool skips(KnownLaunch *entry, const Launch *launch, Repetition *own) {
  Repeats which = repeats(entry, own);
  if (which == REPEATS_NOTHING || !check_touch_again(launch, entry->touched)) return false;
  entry->results_changed = which == REPEATS_RESULTS;
  if (which == REPEATS_RESULTS) check_outputs_restore(entry->touched, entry->results);
  if (entry->findings) findings_count_again(entry->findings);
  entry->misses = 0;
  entry->used = ++uses;
  skipped++;
  return true;
}

/* Is there nothing to find that an earlier launch would not have shown? Its accesses are noted. */
static bool needs_no_check(KnownLaunch *entry, const Launch *launch) {
  if (!entry->right || !entry->touched) return false;
  if (entry->course == COURSE_UNKNOWN)
    entry->course = course_is_fixed(launch->kernel) ? COURSE_FIXED : COURSE_VARIES;
  return entry->course == COURSE_FIXED && all_there(&entry->touched->all) &&
         check_same_again(launch, entry->touched);
}

bool repeat_skips(Launch *launch, Repetition *own) {
  *own = (Repetition){.begun = ++begun, .findings = findings_made()};
  count_launch();
  own->watched = repeat_is_wanted() && running == 0 && !launch->overlaps &&
                 !launch->overlaps_begun && launch->recording < 0 && launch->global;
  KnownLaunch *entry = own->watched ? find_known(launch) : NULL;
  if (entry && entry->rest > 0) {
    entry->rest--;
    own->watched = false;
  } else if (entry && entry->touched && skips(entry, launch, own)) {
    own->watched = false;
    return true;
  }
  launch->unchecked = entry && needs_no_check(entry, launch);
  if (launch->unchecked)
    unchecked++;
  else
    check_touch_now();
  findings_mark();
  running++;
  return false;
}

void repeat_forget(Repetition *own) { own->watched = false; }

static bool is_repeatable(const Launch *launch, const Repetition *own) {
  return own->watched && own->begun == begun && !launch->unique && !launch->prints &&
         !launch->error;
}

TouchedMemory *repeat_touched(const Launch *launch, const Repetition *own) {
  if (!is_repeatable(launch, own)) return NULL;
  return launch->unchecked ? find_known(launch)->touched : check_touched(launch);
}

static bool same_spans(const TouchedMemory *a, const TouchedMemory *b) {
  bool same = a && b && a->all.count == b->all.count;
  for (size_t i = 0; same && i < a->all.count; i++) {
    const TouchedSpan *one = &a->all.spans[i], *other = &b->all.spans[i];
    same = one->first == other->first && one->end == other->end && one->place == other->place &&
           one->place_end == other->place_end;
  }
  return same;
}

/* ---- Copies of results ---- */

static void make_room_for(uint64_t bytes) {
  while (copied_bytes + bytes > COPIES_MOST) {
    KnownLaunch *oldest = NULL;
    for (int i = 0; i < KNOWN_MOST; i++)
      if (known[i].results && (!oldest || known[i].used < oldest->used)) oldest = &known[i];
    drop_results(oldest);
  }
}

static void keep_results(KnownLaunch *entry, uint64_t needs, bool first) {
  uint64_t bytes = entry->touched->output_bytes;
  if (bytes > (first ? FIRST_COPY_MOST : COPIES_MOST)) return;
  make_room_for(bytes);
  entry->results = check_outputs_copy(entry->touched);
  entry->needs = needs;
  if (entry->results) copied_bytes += bytes;
}

/* Looking costs time: a launch that meets other contents again and again is looked at less often. */
static void count_miss(KnownLaunch *entry) {
  if (++entry->misses < MISSES_BEFORE_REST) return;
  uint32_t rest =
      1u << (entry->misses - MISSES_BEFORE_REST < 6 ? entry->misses - MISSES_BEFORE_REST : 6);
  entry->rest = rest < REST_MOST ? rest : REST_MOST;
}

static bool is_right(const Launch *launch, bool any_findings) {
  return !any_findings && !launch->judged && !launch->reads_textures && !launch->cooperative;
}

void repeat_learn(const Launch *launch, const Repetition *own, TouchedMemory *touched) {
  running--;
  if (!own->watched) return;
  KnownLaunch *entry = find_known(launch);
  bool fresh = !entry;
  if (fresh) entry = add_known(launch);
  bool any_findings = findings_made() != own->findings;
  FindingCounts *findings = any_findings ? findings_since_mark() : NULL;
  if (!entry || (any_findings && !findings)) {
    if (!entry || entry->touched != touched) check_touched_free(touched);
    touched = NULL;
  }
  if (!entry) {
    free(findings);
    return;
  }
  entry->used = ++uses;
  bool same = own->before_known && same_spans(entry->touched, touched) &&
              entry->reads_textures == launch->reads_textures;
  set_touched(entry, touched);
  entry->findings = findings;
  if (!launch->unchecked) entry->right = is_right(launch, any_findings);
  entry->reads_textures = launch->reads_textures;
  if (!fresh) count_miss(entry);
  uint64_t content;
  if (!touched || !find_content(&touched->all, launch->reads_textures, &content)) {
    set_touched(entry, NULL);
    return;
  }
  WrittenTextures textures = {touched, false};
  if (launch->reads_textures) texture_each(find_written_texture, &textures);
  entry->content = content;
  entry->stays = (!touched->updates && !textures.writes) || (same && content == own->before);
  if (textures.writes) return;
  uint64_t needs = own->before;
  if (touched->updates ? same : find_content(&touched->inputs, launch->reads_textures, &needs))
    keep_results(entry, needs, fresh);
}
