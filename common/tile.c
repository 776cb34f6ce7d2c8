/* tile.c: prints the picture described in tile.h. */
#include "tile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CELL_TEXT = 32 };

static bool outside_tensor(const TilePicture *picture, int row, int column) {
  if (picture->tensor_rows == 0) return false;
  int tensor_row = picture->first_row + row;
  int tensor_column = picture->first_column + column;
  return tensor_row < 0 || tensor_row >= picture->tensor_rows || tensor_column < 0 ||
         tensor_column >= picture->tensor_columns;
}

static void format_cell(const TilePicture *picture, int row, int column, char *text) {
  size_t pitch = (size_t)(picture->pitch ? picture->pitch : picture->columns);
  size_t index = (size_t)row * pitch + (size_t)column;
  element_format(picture->type, picture->data, index, text, CELL_TEXT - 1);
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

void tile_print(const TilePicture *picture) {
  int rows = picture->rows, columns = picture->columns;
  if (picture->shown_rows && picture->shown_rows < rows) rows = picture->shown_rows;
  if (picture->shown_columns && picture->shown_columns < columns) columns = picture->shown_columns;
  bool colour = terminal_has_colours();
  const char *dim = colour ? "\033[2m" : "", *marked = colour ? "\033[33m" : "";
  const char *plain = colour ? "\033[0m" : "";

  char text[CELL_TEXT];
  int cell_width = 1;
  for (int row = 0; row < rows; row++) {
    for (int column = 0; column < columns; column++) {
      format_cell(picture, row, column, text);
      cell_width = widest(cell_width, text);
    }
  }
  for (int column = 0; column < columns; column++) {
    snprintf(text, sizeof text, "[%d]", column);
    cell_width = widest(cell_width, text);
    snprintf(text, sizeof text, "%d", picture->first_column + column);
    cell_width = widest(cell_width, text);
  }

  bool any_outside = false;
  printf("%s\n", picture->title);
  const char *more_columns = columns < picture->columns ? "  ..." : "";
  printf("%s%12s", dim, "");
  for (int column = 0; column < columns; column++) {
    printf("  %*d", cell_width, picture->first_column + column);
  }
  printf("%s\n%12s", more_columns, "");
  for (int column = 0; column < columns; column++) {
    snprintf(text, sizeof text, "[%d]", column);
    printf("  %*s", cell_width, text);
  }
  printf("%s%s\n", more_columns, plain);
  for (int row = 0; row < rows; row++) {
    snprintf(text, sizeof text, "[%d]", row);
    printf("%s%6d %5s%s", dim, picture->first_row + row, text, plain);
    for (int column = 0; column < columns; column++) {
      bool outside = outside_tensor(picture, row, column);
      any_outside |= outside;
      format_cell(picture, row, column, text);
      printf("  %s%*s%s", outside ? marked : "", cell_width, text, outside ? plain : "");
    }
    printf("%s\n", more_columns);
  }
  if (rows < picture->rows) printf("%12s  ... %d rows in all\n", "", picture->rows);
  if (any_outside) {
    const char *meaning = picture->outside ? picture->outside : "filled by the copy engine";
    printf("%12s  * outside the tensor: %s\n", "", meaning);
  }
}
