/* tree.c: the steps of the current order and what else could have been done at each, in
 * memory that is shared with the processes that run the orders. */
#include <string.h>
#include <sys/mman.h>

#include "explore/explore.h"

/* Address space; only what is used takes memory. */
enum {
  MOST_NODES = 1 << 22,
  MOST_ALTERNATIVES = 1 << 22,
  MOST_NOTES = 1 << 25,
  MOST_KEPT = 1 << 25,
  MOST_WORDS = 1 << 24
};

static void *map_shared(size_t bytes) {
  void *memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return need_memory(memory == MAP_FAILED ? NULL : memory);
}

Tree *tree_new(void) {
  Tree *tree = map_shared(sizeof *tree);
  tree->nodes = map_shared(MOST_NODES * sizeof *tree->nodes);
  tree->alternatives = map_shared(MOST_ALTERNATIVES * sizeof *tree->alternatives);
  tree->notes = map_shared(MOST_NOTES * sizeof *tree->notes);
  tree->kept_notes = map_shared(MOST_KEPT * sizeof *tree->kept_notes);
  tree->words = map_shared(MOST_WORDS * sizeof *tree->words);
  tree->alternative_count = 1; /* 0 means none */
  return tree;
}

void tree_free(Tree *tree) {
  munmap(tree->nodes, MOST_NODES * sizeof *tree->nodes);
  munmap(tree->alternatives, MOST_ALTERNATIVES * sizeof *tree->alternatives);
  munmap(tree->notes, MOST_NOTES * sizeof *tree->notes);
  munmap(tree->kept_notes, MOST_KEPT * sizeof *tree->kept_notes);
  munmap(tree->words, MOST_WORDS * sizeof *tree->words);
  munmap(tree, sizeof *tree);
}

Alternative *tree_alternative(Tree *tree, uint32_t node, ProcessName process) {
  for (uint32_t i = tree->nodes[node].alternatives; i; i = tree->alternatives[i].next)
    if (tree->alternatives[i].process == process) return &tree->alternatives[i];
  return NULL;
}

static Alternative *new_alternative(Tree *tree, TreeNode *node, ProcessName process) {
  if (tree->alternative_count == MOST_ALTERNATIVES) return NULL;
  Alternative *made = &tree->alternatives[tree->alternative_count];
  *made = (Alternative){.process = process, .next = node->alternatives};
  node->alternatives = tree->alternative_count++;
  return made;
}

void tree_add(Tree *tree, uint32_t node, ProcessName process) {
  if ((tree->nodes[node].chosen & ~NAME_EXPIRED) == process) return;
  if (!tree_alternative(tree, node, process)) new_alternative(tree, &tree->nodes[node], process);
}

bool tree_node(Tree *tree, uint32_t number, ProcessName chosen, const Instruction *in,
               const NoteList *list) {
  if (number + 1 < tree->prefix) return true; /* repeated */
  if (number >= MOST_NODES || list->count > MOST_NOTES - tree->note_count) return false;
  TreeNode *node = &tree->nodes[number];
  const uint32_t alternatives = number < tree->node_count ? node->alternatives : 0;
  *node = (TreeNode){.chosen = chosen,
                     .in = in,
                     .alternatives = alternatives,
                     .note_first = tree->note_count,
                     .note_count = list->count};
  if (list->count > 0)
    memcpy(&tree->notes[tree->note_count], list->items, list->count * sizeof *list->items);
  tree->note_count += list->count;
  if (number >= tree->node_count) tree->node_count = number + 1;
  return true;
}

/* The node's choice has been explored: other orders may let the process sleep. */
static bool finish_choice(Tree *tree, TreeNode *node) {
  const ProcessName chosen = node->chosen & ~NAME_EXPIRED;
  Alternative *done = tree_alternative(tree, (uint32_t)(node - tree->nodes), chosen);
  if (done && done->state >= ALTERNATIVE_ASLEEP) return true;
  if (!done) done = new_alternative(tree, node, chosen);
  if (!done || node->note_count > MOST_KEPT - tree->kept_count) return false;
  done->state = ALTERNATIVE_DONE;
  done->note_first = tree->kept_count;
  done->note_count = node->note_count;
  memcpy(&tree->kept_notes[tree->kept_count], &tree->notes[node->note_first],
         node->note_count * sizeof *tree->notes);
  tree->kept_count += node->note_count;
  return true;
}

bool tree_next(Tree *tree) {
  while (tree->node_count) {
    TreeNode *node = &tree->nodes[tree->node_count - 1];
    uint32_t next = node->alternatives;
    while (next && tree->alternatives[next].state != ALTERNATIVE_TO_DO)
      next = tree->alternatives[next].next;
    if (!next) {
      tree->node_count--;
      continue;
    }
    if (!finish_choice(tree, node)) {
      tree->result.end = END_FULL;
      return false;
    }
    tree->alternatives[next].state = ALTERNATIVE_RUNNING;
    node->chosen = tree->alternatives[next].process;
    tree->note_count = node->note_first;
    tree->prefix = tree->node_count;
    return true;
  }
  return false;
}
