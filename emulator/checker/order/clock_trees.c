/* clock_trees.c: what a warp knows about the warps of other clusters: a vector of clocks for each
 * cluster, in a tree of 16 branches that many warps share.
 *
 * Trees never change: joining two makes new nodes only where they differ. They live until the
 * launch ends. The launch's lock must be held. */
#include <stdlib.h>
#include <string.h>

#include "base/holds.h"
#include "base/fault.h"
#include "base/summary.h"
#include "checker/order/clocks.h"

enum { BRANCHES = 16 };
static const size_t BLOCK_BYTES = 1u << 20, MOST_BYTES = (size_t)1 << 30;

typedef struct {
  const void *child[BRANCHES];
} KnownNode;

typedef struct KnownBlock {
  struct KnownBlock *older;
  uint64_t bytes[];
} KnownBlock;

void known_begin(OrderLaunch *launch) {
  /* one more than the clusters: the place for griddepcontrol.wait */
  for (uint64_t reach = 1; reach < (uint64_t)launch->clusters + 1; reach *= BRANCHES)
    launch->depth++;
}

void known_end(OrderLaunch *launch) {
  for (KnownBlock *block = launch->blocks, *older; block; block = older) {
    older = block->older;
    free(block);
  }
  launch->blocks = NULL;
}

static void *allocate_node(OrderLaunch *launch, size_t bytes) {
  bytes = (bytes + 7) & ~(size_t)7;
  if (!launch->blocks || launch->block_used + bytes > BLOCK_BYTES) {
    size_t block_bytes = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    KnownBlock *block = malloc(sizeof *block + block_bytes);
    if (!block) out_of_memory();
    block->older = launch->blocks;
    launch->blocks = block;
    launch->block_used = 0;
    launch->bytes += block_bytes;
    if (launch->bytes > MOST_BYTES) {
      __atomic_store_n(&launch->ignored, true, __ATOMIC_RELAXED);
      summary_note(NOTE_global_order);
    }
  }
  void *made = (uint8_t *)launch->blocks->bytes + launch->block_used;
  launch->block_used += bytes;
  return made;
}

static uint32_t clock_at(const KnownLeaf *leaf, uint32_t i) {
  return i < leaf->count ? leaf->clocks[i] : 0;
}

static KnownLeaf *new_leaf(OrderLaunch *launch, uint32_t count) {
  KnownLeaf *made = allocate_node(launch, sizeof *made + count * sizeof *made->clocks);
  made->count = count;
  return made;
}

static const void *join_leaves(OrderLaunch *launch, const KnownLeaf *one, const KnownLeaf *other) {
  bool one_newer = false, other_newer = false;
  uint32_t count = one->count > other->count ? one->count : other->count;
  for (uint32_t i = 0; i < count; i++) {
    one_newer |= clock_at(one, i) > clock_at(other, i);
    other_newer |= clock_at(other, i) > clock_at(one, i);
  }
  if (!other_newer) return one;
  if (!one_newer) return other;
  KnownLeaf *made = new_leaf(launch, count);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t a = clock_at(one, i), b = clock_at(other, i);
    made->clocks[i] = a > b ? a : b;
  }
  return made;
}

static const void *join_at(OrderLaunch *launch, const void *one, const void *other,
                           uint32_t depth) {
  if (one == other || !other) return one;
  if (!one) return other;
  if (depth == 0) return join_leaves(launch, one, other);
  const KnownNode *a = one, *b = other;
  KnownNode both;
  bool is_a = true, is_b = true;
  for (int i = 0; i < BRANCHES; i++) {
    both.child[i] = join_at(launch, a->child[i], b->child[i], depth - 1);
    is_a &= both.child[i] == a->child[i];
    is_b &= both.child[i] == b->child[i];
  }
  if (is_a) return one;
  if (is_b) return other;
  KnownNode *made = allocate_node(launch, sizeof *made);
  *made = both;
  return made;
}

const void *known_join(OrderLaunch *launch, const void *one, const void *other) {
  return join_at(launch, one, other, launch->depth);
}

const KnownLeaf *order_leaf(const OrderLaunch *launch, const void *tree, uint32_t cluster) {
  for (uint32_t depth = launch->depth; tree && depth-- > 0;)
    tree = ((const KnownNode *)tree)->child[cluster >> (4 * depth) & (BRANCHES - 1)];
  return tree;
}

const void *known_single(OrderLaunch *launch, uint32_t cluster, const uint32_t *clocks,
                         uint32_t count) {
  KnownLeaf *leaf = new_leaf(launch, count);
  memcpy(leaf->clocks, clocks, count * sizeof *clocks);
  const void *tree = leaf;
  for (uint32_t depth = 0; depth < launch->depth; depth++) {
    KnownNode *node = allocate_node(launch, sizeof *node);
    memset(node, 0, sizeof *node);
    node->child[cluster >> (4 * depth) & (BRANCHES - 1)] = tree;
    tree = node;
  }
  HOLDS_DEARLY(order_leaf(launch, tree, cluster) == leaf);
  return tree;
}
