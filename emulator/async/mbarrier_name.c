/* mbarrier_name.c: what the source calls an mbarrier, for reports of hangs: full[2] for one of those that
 * mbarrier_init(&shared->full[stage], 1) has initialised. If that line got the barrier as a parameter, the line of the
 * call says it. PTX has the names of __shared__ variables only, not those of a struct's members or of what lies in
 * extern __shared__. A line that is not understood names nothing. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "async/mbarrier.h"
#include "ptx/program.h"
#include "state/groups.h"

enum { WORD = 128, LARGEST_SOURCE = 4 << 20, PLACES = 16 };

/* A line of the source. text: its file, up to the end of the line. */
typedef struct {
  const char *file;
  uint32_t number;
  char *text, *line;
} Place;

/* &shared->full[stage]: full and stage, reached from shared. &shared->ring[i].full: ring, i and .full. */
typedef struct {
  char name[WORD], index[WORD], rest[WORD], from[WORD];
  const Place *place; /* of the index */
} Argument;

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }
static const char *after_blanks(const char *at) { return at + strspn(at, " \t"); }
static bool is_member(const Argument *argument) { return argument->from[0] != '\0'; }

static const char *read_word(const char *at, bool with_dots, char word[WORD]) {
  size_t length = 0;
  while (in_word(at[length]) || (with_dots && at[length] == '.')) length++;
  if (length >= WORD) length = 0;
  memcpy(word, at, length);
  word[length] = '\0';
  return after_blanks(at + length);
}

/* A call within it, such as address_of(&full[i]), hands its first argument on. */
static bool read_argument(const Place *place, const char *at, Argument *argument) {
  *argument = (Argument){.place = place};
  for (;;) {
    at = read_word(at + strspn(at, " \t&*("), false, argument->name);
    if (!in_word(argument->name[0]) || isdigit((unsigned char)argument->name[0])) return false;
    const char *after_stars = at + strspn(at, "* ");
    if (*at == '*' && *after_stars == ')') { /* a cast */
      at = after_stars + 1;
      continue;
    }
    bool member = *at == '.' || strncmp(at, "->", 2) == 0;
    if (!member && *at != '(' && strncmp(at, "::", 2) != 0) break;
    if (!member || !is_member(argument))
      snprintf(argument->from, WORD, "%s", member ? argument->name : "");
    at += *at == '.' || *at == '(' ? 1 : 2;
  }
  if (*at == '[' || *at == '+') {
    const char *bracket = at;
    at = read_word(after_blanks(at + 1), true, argument->index);
    if (!argument->index[0] || (*bracket == '[' && *at++ != ']')) return false;
    if (*bracket == '[') at = read_word(at, true, argument->rest);
  }
  return *at == ',' || *at == ')';
}

/* The first argument of the only call on this line whose function has "init" in its name. Returns where that is. */
static const char *find_init(const Place *place, Argument *argument) {
  const char *found = NULL;
  uint32_t calls = 0;
  for (const char *at = place->line; (at = strcasestr(at, "init"));) {
    char word[WORD];
    Argument each;
    at = read_word(at, false, word);
    if (*at != '(' || !read_argument(place, at + 1, &each)) continue;
    *argument = each;
    found = at;
    calls++;
  }
  return calls == 1 ? found : NULL;
}

/* One of a list, such as the parameters of a function: goes on to its comma, or to the bracket after the last. */
static const char *after_one(const char *at) {
  for (int depth = 0; *at && (depth > 0 || (*at != ',' && *at != ')')); at++)
    depth += (*at == '(') - (*at == ')');
  return at;
}

/* The function around this place: its name, and its parameters. */
static const char *find_head(const char *text, const char *at, char name[WORD]) {
  for (int depth = 0; at > text;) {
    if (*--at == '}') depth++;
    if (*at != '{' || depth-- > 0) continue;
    depth = 0;
    const char *list = at - 1;
    while (list > text && strchr(" \t\n", *list)) list--;
    if (*list != ')') continue;
    for (int open = 1; open && list > text;) {
      list--;
      open += (*list == ')') - (*list == '(');
    }
    const char *begin = list;
    while (begin > text && in_word(begin[-1])) begin--;
    read_word(begin, false, name);
    if (begin < list) return list + 1;
  }
  return NULL;
}

static const char *find_word(const char *at, const char *end, const char *word) {
  const size_t length = strlen(word);
  while ((at = strstr(at, word)) && at < end && (in_word(at[-1]) || in_word(at[length])))
    at += length;
  return at && at < end ? at : NULL;
}

static int parameter_number(const char *at, const char *name) {
  for (int number = 0;; number++) {
    const char *end = after_one(at), *found = find_word(at, end, name);
    if (found && strchr(",)[=", *after_blanks(found + strlen(name)))) return number;
    if (*end != ',') return -1;
    at = end + 1;
  }
}

/* This argument of the only call of the function on this line. */
static const char *find_call(const Place *place, const char *function, int number,
                             Argument *argument) {
  const char *end = place->line + strlen(place->line);
  const char *found = find_word(place->line, end, function);
  if (!found || find_word(found + 1, end, function)) return NULL;
  const char *at = found + strlen(function);
  if (*at++ != '(') return NULL;
  for (; number > 0; number--) {
    at = after_one(at);
    if (*at++ != ',') return NULL;
  }
  return read_argument(place, at, argument) ? found : NULL;
}

/* Is the index 0 in the thread that came first? Then the nearest place before that gives it a value says so. */
static bool begins_at_zero(const Place *place, const char *index, uint32_t thread) {
  enum { LINES_BEFORE = 20 };
  const char *text = place->text;
  size_t end = (size_t)(place->line - text) + strlen(place->line);
  const size_t length = strlen(index);
  if (strcmp(index, "threadIdx.x") == 0) return thread == 0;
  for (uint32_t lines = 0; end-- > 1 && lines < LINES_BEFORE; lines += text[end] == '\n') {
    if (strncmp(text + end, index, length) != 0 || in_word(text[end - 1])) continue;
    const char *value = after_blanks(text + end + length);
    if (*value != '=' || value[1] == '=') continue;
    value = after_blanks(value + 1);
    const size_t digits = strcspn(value, ";,) \n");
    return (digits == 1 && *value == '0') ||
           (thread == 0 && strncmp(value, "threadIdx.x", digits) == 0 && digits > 1);
  }
  return false;
}

/* The file up to the end of the line. A device or pipe would be waited for. */
static bool read_place(Place *place) {
  struct stat about;
  if (!place->file || stat(place->file, &about) || !S_ISREG(about.st_mode) ||
      about.st_size > LARGEST_SOURCE)
    return false;
  FILE *file = fopen(place->file, "r");
  if (!file) return false;
  char *text = place->text = new_zeros(1, (size_t)about.st_size + 2);
  *text++ = '\n'; /* so that every line has something before it */
  text[fread(text, 1, (size_t)about.st_size, file)] = '\0';
  fclose(file);
  for (uint32_t number = place->number; number > 1 && *text; text += *text != '\0') {
    text += strcspn(text, "\n");
    number--;
  }
  place->line = text;
  text[strcspn(text, "\n")] = '\0';
  char *comment = strstr(text, "//");
  if (comment) *comment = '\0';
  return true;
}

/* The argument at `at`, called as in the lines further out if it is, or begins with, a parameter. */
static bool name_outwards(Place *place, const Place *last, const char *at, Argument *name) {
  if (place == last) return true;
  char function[WORD];
  const char *parameters = find_head(place->text, at, function);
  if (!parameters || (name->index[0] && parameter_number(parameters, name->index) >= 0))
    return false;
  const int number = parameter_number(parameters, is_member(name) ? name->from : name->name);
  /* A variable of this function, or else of a struct that it belongs to. */
  if (number < 0) return is_member(name) || find_word(parameters, at, name->name);
  Argument outer;
  if (!read_place(++place) || !(at = find_call(place, function, number, &outer)) ||
      !name_outwards(place, last, at, &outer))
    return false;
  if (strcmp(outer.index, "0") == 0 && !outer.rest[0]) outer.index[0] = '\0';
  if (outer.index[0] && name->index[0]) return false;
  if (is_member(name) && !outer.index[0]) return true;
  if (is_member(name)) {
    if (snprintf(outer.rest, WORD, ".%s", name->name) >= WORD) return false;
  } else if (name->index[0]) {
    snprintf(outer.index, WORD, "%s", name->index);
    snprintf(outer.rest, WORD, "%s", name->rest);
    outer.place = name->place;
  }
  *name = outer;
  return true;
}

/* ---- Where an mbarrier.init stands ---- */
/* Adds a line to those from mbarrier.init outwards to the kernel's; false: there are too many. */
static bool add_place(Place places[PLACES], uint32_t *count, const char *file, uint32_t number) {
  const Place *last = *count ? &places[*count - 1] : NULL;
  if (last && last->number == number && last->file == file) return true; /* as nvcc has them, too */
  if (*count < PLACES) places[*count] = (Place){.file = file, .number = number};
  return (*count)++ < PLACES;
}

/* Returns how many there are, 0 if they are not all known. */
static uint32_t places_of(const Beginning *begun, Place places[PLACES]) {
  uint32_t count = 0;
  bool known = !begun->deeper;
  for (uint32_t call = 0; known && call <= CALLS_KEPT; call++) {
    const Instruction *in = call ? begun->calls[call - 1] : begun->in;
    const Inlining *note = in ? in->source.inlining : NULL;
    if (!in) break;
    known = add_place(places, &count, note ? note->inner_file : in->source.file,
                      note ? note->inner.line : in->source.line);
    for (; note && known; note = note->caller)
      known = add_place(places, &count, note->outer_file, note->outer.line);
  }
  return known ? count : 0;
}

static bool is_one_beginning(const Beginning *a, const Beginning *b) {
  Place ours[PLACES], theirs[PLACES];
  if (a->in == b->in && !a->calls[0] && !b->calls[0]) return true;
  const uint32_t count = places_of(a, ours);
  if (!count || places_of(b, theirs) != count) return false;
  for (uint32_t i = 0; i < count; i++)
    if (!ours[i].file || !theirs[i].file || ours[i].number != theirs[i].number ||
        strcmp(ours[i].file, theirs[i].file) != 0)
      return false;
  return true;
}

bool mbarrier_is_one_row(const PhaseRecord *a, const PhaseRecord *b) {
  return a->begun.in && b->begun.in && SHARED_RANK(a->key) == SHARED_RANK(b->key) &&
         is_one_beginning(&a->begun, &b->begun);
}

void mbarrier_note_beginning(Warp *warp, const Instruction *in, int lane, PhaseRecord *record) {
  Beginning begun = {.in = in};
  const Frame *frame = current_group(warp)->frame;
  for (uint32_t i = 0; i < CALLS_KEPT && frame; i++, frame = frame->parent)
    begun.calls[i] = &frame->caller->code[frame->return_place - 1];
  begun.deeper = frame != NULL;
  record->begun_elsewhere |= record->begun.in && !is_one_beginning(&record->begun, &begun);
  record->begun = begun;
  record->begun_thread = warp->index * LANES + (uint32_t)lane;
}

/* The barriers of a block that one line has initialised, called from the same lines. */
typedef struct {
  uint32_t count, lowest, stride, first_thread;
} Row;

static bool find_row(const PhaseTable *table, const PhaseRecord *own, Row *row) {
  uint32_t highest = 0;
  *row = (Row){.lowest = UINT32_MAX};
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < table->capacity; i++) {
      const PhaseRecord *each = &table->records[i];
      const uint32_t address = each->key & ~1u;
      if (!each->begun.in || SHARED_RANK(each->key) != SHARED_RANK(own->key)) continue;
      if (each->begun_elsewhere) return false; /* it may be one of the row, which has gaps then */
      if (!is_one_beginning(&each->begun, &own->begun)) continue;
      if (pass && row->stride && (address - row->lowest) % row->stride) return false;
      if (pass) continue;
      if (address < row->lowest) row->first_thread = each->begun_thread;
      if (address < row->lowest) row->lowest = address;
      if (address > highest) highest = address;
      row->count++;
      row->stride = row->count > 1 ? (highest - row->lowest) / (row->count - 1) : 0;
    }
  return row->count == 1 || row->lowest + row->stride * (row->count - 1) == highest;
}

bool mbarrier_name_in_source(Cluster *cluster, uint32_t address, const char *variable, char *name,
                             size_t capacity) {
  const PhaseRecord *own = mbarrier_record(cluster, address);
  Place places[PLACES];
  const uint32_t count = own->begun.in ? places_of(&own->begun, places) : 0;
  Row row;
  if (!count || !find_row(cluster->async->barriers, own, &row)) return false;
  Argument argument;
  const char *at = NULL;
  bool found = false;
  for (uint32_t i = 0; i < count && !at; i++)
    if (read_place(&places[i]) && (at = find_init(&places[i], &argument)))
      found = name_outwards(&places[i], &places[count - 1], at, &argument) &&
              (!*variable || argument.rest[0] ||
               (is_member(&argument) && strcmp(variable, argument.name) != 0));
  bool counted = found && argument.index[0] && !isdigit((unsigned char)argument.index[0]);
  if (counted)
    found = (row.count == 1 || row.stride == 8 || argument.rest[0]) &&
            begins_at_zero(argument.place, argument.index, row.first_thread);
  else
    found = found && row.count == 1;
  if (counted && found)
    snprintf(argument.index, WORD, "%u", row.stride ? (address - row.lowest) / row.stride : 0);
  if (found)
    snprintf(name, capacity, argument.index[0] ? "%s[%s]%s" : "%s", argument.name, argument.index,
             argument.rest);
  for (uint32_t i = 0; i < count; i++) free(places[i].text);
  return found;
}
