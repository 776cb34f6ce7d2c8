/* mbarrier_name.c: what the source calls an mbarrier, for reports of hangs: full[2] for one of those that
 * mbarrier_init(&shared->full[stage], 1) has initialised. PTX has the names of __shared__ variables only, not
 * those of a struct's members or of what lies in extern __shared__. A line that is not understood names nothing. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "async/mbarrier.h"
#include "ptx/program.h"
#include "state/cluster.h"

enum { WORD = 128, LARGEST_SOURCE = 4 << 20 };

/* &shared->full[stage]: full and stage. &shared->ring[i].full: ring, i and .full. */
typedef struct {
  char name[WORD], index[WORD], rest[WORD];
  bool is_member;
} Argument;

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }
static const char *after_blanks(const char *at) { return at + strspn(at, " \t"); }

static const char *read_word(const char *at, bool with_dots, char word[WORD]) {
  size_t length = 0;
  while (in_word(at[length]) || (with_dots && at[length] == '.')) length++;
  if (length >= WORD) length = 0;
  memcpy(word, at, length);
  word[length] = '\0';
  return after_blanks(at + length);
}

/* at: after the bracket that opens the arguments of a call. A call within it, such as address_of(&full[i]), hands
 * its first argument on. */
static bool read_argument(const char *at, Argument *argument) {
  *argument = (Argument){.is_member = false};
  for (;;) {
    at = read_word(at + strspn(at, " \t&*("), false, argument->name);
    if (!in_word(argument->name[0])) return false;
    bool member = *at == '.' || strncmp(at, "->", 2) == 0;
    if (!member && *at != '(' && strncmp(at, "::", 2) != 0) break;
    argument->is_member = member;
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

/* The argument of the only call on this line whose function has "init" in its name. */
static bool find_argument(char *line, Argument *argument) {
  uint32_t calls = 0;
  char *comment = strstr(line, "//");
  if (comment) *comment = '\0';
  for (const char *at = line; (at = strcasestr(at, "init"));) {
    char word[WORD];
    Argument each;
    at = read_word(at, false, word);
    if (*at != '(' || !read_argument(at + 1, &each)) continue;
    *argument = each;
    calls++;
  }
  return calls == 1;
}

/* Is the index 0 in the thread that came first? Then the nearest place before that gives it a value says so. */
static bool begins_at_zero(const char *text, size_t end, const char *index, uint32_t thread) {
  enum { LINES_BEFORE = 20 };
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

/* The file up to the end of a line, or NULL. *line: where that begins. A device or pipe would be waited for. */
static char *read_source(const char *path, uint32_t number, size_t *line) {
  struct stat about;
  if (stat(path, &about) || !S_ISREG(about.st_mode) || about.st_size > LARGEST_SOURCE) return NULL;
  FILE *file = fopen(path, "r");
  if (!file) return NULL;
  char *text = calloc(1, (size_t)about.st_size + 1);
  if (text) text[fread(text, 1, (size_t)about.st_size, file)] = '\0';
  fclose(file);
  if (!text) return NULL;
  for (*line = 0; number > 1 && text[*line]; *line += text[*line] != '\0') {
    *line += strcspn(text + *line, "\n");
    number--;
  }
  text[*line + strcspn(text + *line, "\n")] = '\0';
  return text;
}

/* The barriers of a block that one line has initialised. */
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
      if (!each->begun_by || SHARED_RANK(each->key) != SHARED_RANK(own->key)) continue;
      if (each->begun_elsewhere) return false; /* it may be one of the row, which has gaps then */
      if (!is_one_line(each->begun_by, own->begun_by)) continue;
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
  const Instruction *in = own->begun_by;
  const Function *kernel = cluster->launch->kernel;
  /* A function may be called for several arrays. */
  if (!in || in < kernel->code || in >= kernel->code + kernel->count) return false;
  Row row;
  if (!in->source_line || !in->source_file || !find_row(cluster->async->barriers, own, &row))
    return false;
  size_t line;
  char *text = read_source(in->source_file, in->source_line, &line);
  Argument argument;
  bool found = text && find_argument(text + line, &argument) &&
               (!*variable || (argument.is_member && strcmp(variable, argument.name) != 0));
  bool counted = found && argument.index[0] && !isdigit((unsigned char)argument.index[0]);
  if (counted)
    found = (row.count == 1 || row.stride == 8 || argument.rest[0]) &&
            begins_at_zero(text, strlen(text + line) + line, argument.index, row.first_thread);
  else
    found = found && row.count == 1;
  if (counted && found)
    snprintf(argument.index, WORD, "%u", row.stride ? (address - row.lowest) / row.stride : 0);
  if (found)
    snprintf(name, capacity, argument.index[0] ? "%s[%s]%s" : "%s", argument.name, argument.index,
             argument.rest);
  free(text);
  return found;
}
