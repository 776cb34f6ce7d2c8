/* record.c: a recorded cluster's begin and end, and what is reported of it (RECORDING.md). */
#include "record/record.h"

#include "base/report.h"
#include "base/rules.h"
#include "base/settings.h"
#include "record/record_line.h"

/* ---- Reports --------------------------------------------------------------------------------- */
/* A finding that an instruction causes repeatedly is recorded once. */
static bool is_new_finding(Recorder *recorder, const ReportNote *note) {
  for (int i = 0; i < recorder->finding_count; i++)
    if (recorder->findings[i].in == note->in && recorder->findings[i].rule == note->what->rule)
      return false;
  if (recorder->finding_count == FINDINGS_KEPT) return false;
  recorder->findings[recorder->finding_count].in = note->in;
  recorder->findings[recorder->finding_count++].rule = note->what->rule;
  return true;
}

static void record_report(const ReportNote *note) {
  Recorder *recorder = note->warp ? note->warp->cta->cluster->recorder : NULL;
  if (!recorder || (!note->ends_launch && !is_new_finding(recorder, note))) return;
  recorder =
      begin_warp_event(note->ends_launch ? "fault" : "finding", note->warp, note->in, note->lanes);
  if (!recorder) return;
  const Rule *rule = note->what->rule;
  /* Nothing is left to happen where a kernel hangs, whatever the clock of the warp that is named. */
  if (recorder->clock && note->ends_launch && rule->grade == GRADE_HANG)
    recorder->places.places[recorder->places.count - 1].kind = AT_END;
  add_string(recorder, rule->name);
  add_string(recorder, note->text);
  end_event(recorder);
}

/* ---- A cluster's life ------------------------------------------------------------------------ */
static void define_cluster(const Cluster *cluster, Recorder *recorder, uint8_t initial) {
  RecordText *out = &recorder->text;
  const Index3 block = cluster->launch->block;
  text_add(out, "{\"cluster\": ");
  text_number(out, cluster->number);
  text_named_number(out, "launch", recorder->launch_number);
  text_add(out, ", \"blocks\": [");
  for (uint32_t i = 0; i < cluster->cta_count; i++) {
    const Index3 index = cluster->ctas[i].index;
    text_add(out, i ? ", [" : "[");
    text_number(out, index.x);
    add_number(recorder, index.y);
    add_number(recorder, index.z);
    text_add(out, "]");
  }
  text_add(out, "], \"warps_per_block\": ");
  text_number(out, recorder->warps_per_block);
  text_named_number(out, "threads_per_block", (int64_t)block.x * block.y * block.z);
  text_named_number(out, "shared_bytes", recorder->shared_bytes);
  text_named_number(out, "initial", initial);
  text_add(out, "}\n");
}

void record_cluster_begin(Cluster *cluster, int launch_number, uint8_t initial) {
  cluster->recorder = NULL;
  const bool writes = launch_number >= 0 && record_wants(cluster) && record_take(0);
  if (!writes && !settings()->count && !settings()->clock) return;
  Recorder *recorder = new_zeros(1, sizeof *recorder);
  uint32_t warps = cluster->cta_count * cluster->ctas[0].warp_count;
  recorder->writes_events = writes;
  if (settings()->count) recorder->counters = new_zeros(1, sizeof *recorder->counters);
  if (settings()->clock) recorder->clock = clock_trace_begin(cluster, writes);
  recorder->launch_number = launch_number;
  recorder->warps_per_block = cluster->ctas[0].warp_count;
  recorder->shared_bytes = cluster->ctas[0].shared_bytes;
  recorder->warps = new_zeros(warps, sizeof *recorder->warps);
  cluster->recorder = recorder;
  FOR_WARPS(warp, cluster) warp->watched |= WATCH_STEPS;
  if (!writes) return;
  recorder->mirror = new_zeros(cluster->cta_count, recorder->shared_bytes);
  memset(recorder->mirror, initial, (size_t)cluster->cta_count * recorder->shared_bytes);
  define_cluster(cluster, recorder, initial);
  report_hooks.listen = record_report;
}

void record_variable(Cluster *cluster, const char *symbol, uint32_t offset, uint64_t bytes) {
  if (!cluster->recorder->writes_events) return;
  RecordText *out = &cluster->recorder->text;
  text_add(out, "{\"variable\": ");
  text_string(out, variable_name(symbol).text);
  text_named_number(out, "offset", offset);
  text_named_number(out, "bytes", (int64_t)bytes);
  text_add(out, "}\n");
}

/* Bytes that differ from the mirror were left undefined by copies that never landed. */
static void record_poison(Cluster *cluster) {
  Recorder *recorder = cluster->recorder;
  for (uint32_t rank = 0; rank < cluster->cta_count; rank++) {
    const uint8_t *now = cluster->ctas[rank].shared;
    const uint8_t *known = recorder->mirror + (size_t)rank * recorder->shared_bytes;
    for (uint32_t i = 0; i < recorder->shared_bytes; i++) {
      uint32_t first = i;
      while (i < recorder->shared_bytes && now[i] != known[i]) i++;
      if (i > first) record_bytes(cluster, "poison", (SharedPiece){rank << 24 | first, i - first});
    }
  }
}

static void write_end(Cluster *cluster) {
  Recorder *recorder = cluster->recorder;
  record_settle(cluster);
  record_poison(cluster);
  RecordText *out = &recorder->text;
  text_add(out, "{\"end\": ");
  text_number(out, (int64_t)recorder->time);
  text_named_number(out, "events", (int64_t)recorder->events);
  text_add(out, ", \"shared\": [");
  size_t memory_text = (size_t)cluster->cta_count * recorder->shared_bytes / 3 * 4;
  recorder->stopped |= !record_take(out->used - recorder->charged + memory_text);
  for (uint32_t i = 0; i < cluster->cta_count && !recorder->stopped; i++) {
    if (i) text_add(out, ", ");
    text_base64(out, cluster->ctas[i].shared, recorder->shared_bytes);
  }
  text_add(out, "]}\n");
  record_keep(recorder->launch_number, cluster->number, out, &recorder->places);
}

static void keep_counters(const Cluster *cluster) {
  const Recorder *recorder = cluster->recorder;
  Counters *counters = recorder->counters;
  const uint32_t warps = cluster->cta_count * recorder->warps_per_block;
  for (uint32_t w = 0; w < warps; w++)
    for (int lane = 0; lane < LANES; lane++)
      if (recorder->warps[w].instructions[lane] > counters->most_by_thread)
        counters->most_by_thread = recorder->warps[w].instructions[lane];
  count_keep(kernel_name(cluster->launch->traits->name).text, counters);
}

void record_cluster_end(Cluster *cluster) {
  Recorder *recorder = cluster->recorder;
  if (!recorder) return;
  if (recorder->writes_events) write_end(cluster);
  if (recorder->counters) keep_counters(cluster);
  if (recorder->clock) clock_trace_end(recorder->clock);
  free(recorder->counters);
  for (uint32_t i = 0; i < recorder->copy_count; i++) free(recorder->copies[i].pieces);
  free(recorder->copies);
  free(recorder->unsettled.pieces);
  free(recorder->warps);
  free(recorder->mirror);
  free(recorder);
  cluster->recorder = NULL;
  FOR_WARPS(warp, cluster) warp->watched &= (uint8_t)~WATCH_STEPS;
}
