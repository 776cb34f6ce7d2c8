/* tile.h: prints a tile as a picture, with the tensor's coordinates around it.
 *
 *   tile (1,2)            columns of the tensor across, rows down; local coordinates in brackets
 *              32   33   34   35
 *             [0]  [1]  [2]  [3]
 *    16 [0]   544  545  546  547
 *    17 [1]   576  577  578  579
 *
 * A cell outside the tensor is marked with '*', and a line below says what that means. */
#ifndef COMMON_TILE_H
#define COMMON_TILE_H

#include "element.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const char *title;
  ElementType type;
  const void *data; /* element (row, column) is data[row * pitch + column] */
  int rows, columns;
  int pitch;     /* elements from one row of data to the next; 0 means columns */
  int first_row; /* the tensor's coordinates of element (0,0); may be negative */
  int first_column;
  int tensor_rows; /* the tensor's size, to mark what lies outside; 0: no marks */
  int tensor_columns;
  const char *outside; /* what a mark means; NULL: "filled by the copy engine", as after a load */
  int shown_rows;      /* print only so many, then "..."; 0 means all */
  int shown_columns;
  const void *beside; /* another state of the same tile, printed to the right; NULL: none */
} TilePicture;

/* Prints to stdout; in colour only on a terminal, and never when NO_COLOR is set. */
void tile_print(const TilePicture *picture);

#ifdef __cplusplus
}
#endif
#endif
