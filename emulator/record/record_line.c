/* record_line.c: writes lines of JSON, and the bytes of shared memory that threads and copies changed.
 *
 * The hooks run before an instruction, but the bytes that threads write to shared memory are known
 * only after it. So the hooks note the addresses, and the bytes are recorded before the next event
 * (record_settle). A mirror of shared memory, built only from recorded bytes, shows at the end
 * whether something is missing. */
#include "record/record_line.h"

#include "base/holds.h"

/* ---- Lines ----------------------------------------------------------------------------------- */
enum { CHARGED_AT_ONCE = 1 << 16 };

void place_at_warp(Recorder *recorder, const Warp *warp) {
  if (recorder->clock)
    recorder->place = (ClockPlace){.number = agent_of(warp),
                                   .kind = AT_WARP,
                                   .moment = clock_moment(recorder->clock, agent_of(warp))};
}

void place_at(Recorder *recorder, ClockPlaceKind kind, uint32_t number) {
  recorder->place = (ClockPlace){.number = number, .kind = kind};
}

bool begin_event(Recorder *recorder, const char *kind) {
  if (recorder->text.used - recorder->charged > CHARGED_AT_ONCE) {
    recorder->stopped |= !record_take(recorder->text.used - recorder->charged);
    recorder->charged = recorder->text.used;
  }
  if (recorder->stopped || !recorder->writes_events) return false;
  recorder->events++;
  if (recorder->clock) {
    recorder->place.line = recorder->text.used;
    clock_places_add(&recorder->places, recorder->place);
  }
  text_add(&recorder->text, "[\"");
  text_add(&recorder->text, kind);
  text_add(&recorder->text, "\",");
  text_number(&recorder->text, (int64_t)recorder->time);
  return true;
}

void add_number(Recorder *recorder, int64_t number) {
  text_add(&recorder->text, ",");
  text_number(&recorder->text, number);
}

void add_string(Recorder *recorder, const char *string) {
  text_add(&recorder->text, ",");
  text_string(&recorder->text, string);
}

void end_event(Recorder *recorder) { text_add(&recorder->text, "]\n"); }

Recorder *begin_warp_event(const char *kind, const Warp *warp, const Instruction *in,
                           LaneMask mask) {
  Recorder *recorder = warp->cta->cluster->recorder;
  record_settle(warp->cta->cluster);
  if (warp) place_at_warp(recorder, warp);
  if (!begin_event(recorder, kind)) return NULL;
  add_number(recorder, agent_of(warp));
  add_number(recorder, mask);
  add_number(recorder, in ? (int64_t)record_place(in) : -1);
  return recorder;
}

void warp_event(const char *kind, const Warp *warp, const Instruction *in, LaneMask mask) {
  Recorder *recorder = begin_warp_event(kind, warp, in, mask);
  if (recorder) end_event(recorder);
}

void add_pieces(Recorder *recorder, const SharedPiece *pieces, int count) {
  text_add(&recorder->text, ",[");
  for (int i = 0; i < count; i++) {
    text_add(&recorder->text, i ? ",[" : "[");
    text_number(&recorder->text, pieces[i].address);
    add_number(recorder, pieces[i].bytes);
    text_add(&recorder->text, "]");
  }
  text_add(&recorder->text, "]");
}

/* ---- Bytes of shared memory ------------------------------------------------------------------ */
void record_bytes(Cluster *cluster, const char *author, SharedPiece piece) {
  Recorder *recorder = cluster->recorder;
  const uint8_t *now =
      cluster->ctas[SHARED_RANK(piece.address)].shared + SHARED_OFFSET(piece.address);
  size_t at =
      (size_t)SHARED_RANK(piece.address) * recorder->shared_bytes + SHARED_OFFSET(piece.address);
  HOLDS(SHARED_OFFSET(piece.address) + piece.bytes <= recorder->shared_bytes);
  memcpy(recorder->mirror + at, now, piece.bytes);
  if (!begin_event(recorder, "bytes")) return;
  add_string(recorder, author);
  add_number(recorder, piece.address);
  text_add(&recorder->text, ",");
  text_base64(&recorder->text, now, piece.bytes);
  end_event(recorder);
}

void piece_append(PieceList *list, SharedPiece piece) {
  list->pieces = grown_list(list->pieces, list->count, &list->capacity, sizeof *list->pieces);
  list->pieces[list->count++] = piece;
}

static int piece_by_address(const void *a, const void *b) {
  const SharedPiece *first = a, *second = b;
  return (first->address > second->address) - (first->address < second->address);
}

void merge_pieces(PieceList *list) {
  if (list->count < 2) return;
  qsort(list->pieces, (size_t)list->count, sizeof *list->pieces, piece_by_address);
  uint32_t kept = 0;
  for (uint32_t i = 1; i < list->count; i++) {
    SharedPiece *last = &list->pieces[kept], next = list->pieces[i];
    if (next.address > last->address + last->bytes) {
      list->pieces[++kept] = next;
      continue;
    }
    uint32_t end = next.address + next.bytes;
    if (end > last->address + last->bytes) last->bytes = end - last->address;
  }
  list->count = kept + 1;
}

void record_pieces(Cluster *cluster, char letter, uint32_t number, PieceList *list) {
  char author[16];
  snprintf(author, sizeof author, "%c%u", letter, number);
  merge_pieces(list);
  for (uint32_t i = 0; i < list->count; i++) record_bytes(cluster, author, list->pieces[i]);
  list->count = 0;
}

void record_settle(Cluster *cluster) {
  Recorder *recorder = cluster->recorder;
  if (!recorder->unsettled.count) return;
  place_at_warp(recorder, recorder->writer);
  record_pieces(cluster, 'w', agent_of(recorder->writer), &recorder->unsettled);
}
