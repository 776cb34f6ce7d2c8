/* tile.c: prints the picture described in tile.h. */
#include "tile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CELL_TEXT = 32 };
#define BETWEEN_STATES "      "

static bool outside_tensor(const TilePicture *picture, int row, int column) {
  if (picture->tensor_rows == 0) return false;
  int tensor_row = picture->first_row + row;
  int tensor_column = picture->first_column + column;
  return tensor_row < 0 || tensor_row >= picture->tensor_rows || tensor_column < 0 ||
         tensor_column >= picture->tensor_columns;
}

static void format_cell(const TilePicture *picture, const void *data, int row, int column,
                        char *text) {
  size_t pitch = (size_t)(picture->pitch ? picture->pitch : picture->columns);
  size_t index = (size_t)row * pitch + (size_t)column;
  element_format(picture->type, data, index, text, CELL_TEXT - 1);
  if (outside_tensor(picture, row, column)) strcat(text, "*");
}

static int widest(int so_far, const char *text) {
  int length = (int)strlen(text);
  return length > so_far ? length : so_far;
}

static bool terminal_has_colours(void) {
  const char *terminal = getenv("TERM");
  if (!terminal || !*terminal || !strcmp(terminal, "dumb") || getenv("NO_COLOR")) return false;
  return isatty(STDOUT_FILENO);
}

/* The width that every cell of the picture fits into, and the numbers above the columns. */
static int find_cell_width(const TilePicture *picture, int rows, int columns) {
  const void *states[] = {picture->data, picture->beside};
  char text[CELL_TEXT];
  int width = 1;
  for (int state = 0; state < 2 && states[state]; state++) {
    for (int row = 0; row < rows; row++) {
      for (int column = 0; column < columns; column++) {
        format_cell(picture, states[state], row, column, text);
        width = widest(width, text);
      }
    }
  }
  for (int column = 0; column < columns; column++) {
    snprintf(text, sizeof text, "[%d]", column);
    width = widest(width, text);
    snprintf(text, sizeof text, "%d", picture->first_column + column);
    width = widest(width, text);
  }
  return width;
}

void tile_print(const TilePicture *picture) {
  int rows = picture->rows, columns = picture->columns;
  if (picture->shown_rows && picture->shown_rows < rows) rows = picture->shown_rows;
  if (picture->shown_columns && picture->shown_columns < columns) columns = picture->shown_columns;
  bool colour = terminal_has_colours();
  const char *dim = colour ? "\033[2m" : "", *marked = colour ? "\033[33m" : "";
  const char *plain = colour ? "\033[0m" : "";

  const void *states[] = {picture->data, picture->beside};
  int state_count = picture->beside ? 2 : 1;
  const char *more_columns = columns < picture->columns ? "  ..." : "";

  const int cell_width = find_cell_width(picture, rows, columns);
  char text[CELL_TEXT];

  printf("%s\n%s%12s", picture->title, dim, "");
  for (int state = 0; state < state_count; state++) {
    printf("%s", state ? BETWEEN_STATES : "");
    for (int column = 0; column < columns; column++) {
      printf("  %*d", cell_width, picture->first_column + column);
    }
    printf("%s", more_columns);
  }
  printf("\n%12s", "");
  for (int state = 0; state < state_count; state++) {
    printf("%s", state ? BETWEEN_STATES : "");
    for (int column = 0; column < columns; column++) {
      snprintf(text, sizeof text, "[%d]", column);
      printf("  %*s", cell_width, text);
    }
    printf("%s", more_columns);
  }
  printf("%s\n", plain);

  bool any_outside = false;
  for (int row = 0; row < rows; row++) {
    snprintf(text, sizeof text, "[%d]", row);
    printf("%s%6d %5s%s", dim, picture->first_row + row, text, plain);
    for (int state = 0; state < state_count; state++) {
      printf("%s", state ? BETWEEN_STATES : "");
      for (int column = 0; column < columns; column++) {
        bool outside = outside_tensor(picture, row, column);
        any_outside |= outside;
        format_cell(picture, states[state], row, column, text);
        printf("  %s%*s%s", outside ? marked : "", cell_width, text, outside ? plain : "");
      }
      printf("%s", more_columns);
    }
    printf("\n");
  }
  if (rows < picture->rows) printf("%12s  ... %d rows in all\n", "", picture->rows);
  if (any_outside) {
    const char *meaning = picture->outside ? picture->outside : "filled by the copy engine";
    printf("%12s  * outside the tensor: %s\n", "", meaning);
  }
}
