/* explore.h: every order of a launch's steps that could make a difference.
 *
 * A process is a group of lanes that stand at one instruction, or a copy in flight. A step of a
 * process is one visible instruction (an access to shared or global memory, a barrier, an
 * asynchronous operation, an exit) and everything up to the next one, or one part of a copy's
 * landing. An order is a sequence of steps. Two orders that differ only by swaps of neighbouring
 * independent steps have the same result, so one of them is enough: dynamic partial-order reduction
 * with source sets and sleep sets (racing_steps.c).
 *
 * Each order runs in a child process made by fork(), which restores memory, registers, barriers,
 * copies and the checker exactly, whatever they consist of. What orders have to know of each other
 * is in memory that all of them share (tree.c). */
#pragma once

#include "async/async.h"
#include "machine/machine.h"
#include "state/notes.h"

/* ---- Names: equal in all orders ---- */
typedef uint64_t ProcessName;
enum {
  NAME_COPY_BITS = 24,
  NAME_LANE_BITS = 5,
  NAME_WARP_BITS = 9, /* a cluster of 16 blocks of 32 warps */
  NAME_LANE_AT = NAME_COPY_BITS,
  NAME_WARP_AT = NAME_LANE_AT + NAME_LANE_BITS,
  NAME_CLUSTER_AT = NAME_WARP_AT + NAME_WARP_BITS
};
/* The step was made when nothing else could run: a limited wait gave up. */
#define NAME_EXPIRED (1ull << 63)
typedef struct {
  uint32_t cluster, warp, lane; /* warp: counted through the cluster's blocks */
  uint32_t copy;                /* the lane's n-th copy, from 1; 0: the lanes themselves */
} NameParts;
ProcessName process_name(NameParts parts);
NameParts name_parts(ProcessName name);

/* ---- Schedules (schedule.c) ---- */
typedef struct {
  ProcessName process;
  uint32_t steps;
} ScheduleRun;
typedef struct {
  ScheduleRun *runs;
  uint32_t count, capacity;
} ScheduleList;
void schedule_add(ScheduleList *list, ProcessName process, uint32_t steps);
bool schedule_save(const char *file, const Launch *launch, uint32_t number,
                   const ScheduleList *list);
/* The schedule in settings()->replay_file for the launch of this number, NULL: none. An unsuitable
 * file ends the program with exit code 2. */
const ScheduleList *schedule_of_replay(const Launch *launch, uint32_t number);

/* ---- The tree of orders, in shared memory (tree.c) ---- */
typedef struct {
  ProcessName chosen;
  const Instruction *in; /* that the step began with; the same in all orders */
  uint32_t alternatives; /* number of the first; 0: none */
  uint32_t note_first, note_count;
} TreeNode;
typedef enum {
  ALTERNATIVE_TO_DO,
  ALTERNATIVE_RUNNING,
  ALTERNATIVE_DONE,
  ALTERNATIVE_ASLEEP,    /* other orders cover it */
  ALTERNATIVE_IMPOSSIBLE /* the process has to wait there */
} AlternativeState;
typedef struct {
  ProcessName process;
  uint32_t next;
  uint32_t state; /* AlternativeState */
  uint32_t note_first, note_count;
} Alternative;

typedef enum {
  END_RESULT,
  END_HANG,
  END_FAULT,
  END_REDUNDANT,
  END_IMPOSSIBLE,
  END_FULL,
  END_TIME
} OrderEnd;
enum { DIFFERENCE_TEXT = 256 };
typedef struct {
  uint32_t end;  /* OrderEnd */
  uint64_t hash; /* of what it changed in global memory and printed */
  bool finding;
  const Rule *rule;                 /* of the fault or the first finding */
  char difference[DIFFERENCE_TEXT]; /* from the first order */
} OrderResult;

typedef struct {
  uint64_t address, value;
} ChangedWord;

typedef struct {
  TreeNode *nodes;
  Alternative *alternatives;
  Note *notes;        /* of the nodes */
  Note *kept_notes;   /* of alternatives that are done */
  ChangedWord *words; /* that the first order changed */
  uint32_t node_count, alternative_count, note_count, kept_count, word_count;
  uint32_t prefix; /* the steps that the next order repeats */
  OrderResult result;
} Tree;
Tree *tree_new(void);
void tree_free(Tree *tree);
bool tree_next(Tree *tree); /* prepares the next order; false: there is none */
/* Is it the node's choice, or one of its alternatives? */
Alternative *tree_alternative(Tree *tree, uint32_t node, ProcessName process);
void tree_add(Tree *tree, uint32_t node, ProcessName process);
/* false: the tree is full */
bool tree_node(Tree *tree, uint32_t number, ProcessName chosen, const Instruction *in,
               const NoteList *list);

/* ---- One order (order.c) ---- */
typedef struct PriorSteps
    PriorSteps; /* racing_steps.c: the steps of each process that come before */
typedef struct {
  ProcessName name;
  Context *context;
  Warp *warp;
  uint32_t lane;             /* the first of the group */
  AsyncOperation *operation; /* NULL: a group of lanes */
  bool gone;
  bool blocked; /* at its instruction, since the cluster's changes were: */
  uint64_t seen_changes;
  uint32_t steps;
  const PriorSteps *clock;       /* without its own steps */
  const PriorSteps *read_clock;  /* of a copy: when its source had been read */
  uint32_t read_steps, woken_by; /* woken_by: number of the step + 1; 0: none */
  struct PollWatch *poll;        /* idle_loops.c; NULL: it has not read yet */
  bool polls;                    /* set aside until something that it reads changes */
} Process;

typedef struct {
  ProcessName process;
  uint32_t note_first, note_count; /* in the tree's kept notes */
} Sleeper;
typedef struct {
  Sleeper *items;
  uint32_t count, capacity;
} SleepSet;

typedef struct Races Races;
typedef struct Order {
  Launch *launch;
  Context **contexts;
  uint32_t context_count;
  Process *processes;
  uint32_t count, capacity;
  uint32_t *table; /* hash of names */
  uint32_t table_size;
  uint32_t *issued; /* copies of each lane so far */
  uint32_t depth;   /* steps so far */
  uint32_t last;    /* the process of the last step */
  uint32_t stalls, expirations;
  const ScheduleList *schedule; /* to follow at first; NULL: none */
  uint32_t run, run_steps;      /* where in the schedule */
  Tree *tree;                   /* NULL: nothing is explored */
  Races *races;
  SleepSet sleep;
} Order;
OrderEnd run_order(Order *order);
void free_order(Order *order);
/* process.c */
Process *process_named(Order *order, ProcessName name); /* NULL: there is none */
ProcessName name_of_lanes(const Context *context, const Warp *warp, uint32_t lane);
int number_of_group(const Warp *warp, uint32_t lane); /* the number of the lane's group; -1: none */
/* After a step of the warp. Groups have split, merged and ended: new ones come after the step, and
 * merged ones after the steps of both. */
void update_processes(Order *order, Context *context, Warp *warp, const PriorSteps *clock);
void add_copy_process(Order *order, AsyncOperation *operation, const PriorSteps *clock);
static inline uint32_t index_of_process(const Order *order, const Process *process) {
  return (uint32_t)(process - order->processes);
}

/* ---- Which steps depend on each other (racing_steps.c) ---- */
Races *races_new(void);
/* The process has made the step number order->depth, and `notes` says what it touched. */
void races_step(Order *order, uint32_t process);
const PriorSteps *races_clock_after(Order *order, uint32_t process); /* with its own steps */
const PriorSteps *races_join(Order *order, const PriorSteps *one, const PriorSteps *other);
/* The reads of the process since this step have had no effect. */
void races_forget_reads(Order *order, uint32_t process, uint32_t since);
/* dependent_steps.c */
static inline bool note_is_memory(const Note *one) { return one->kind <= NOTE_UPDATE; }
bool notes_depend(const Note *one, uint32_t count, const Note *other, uint32_t other_count);
/* Sleep sets: processes whose next step another order has tried here, with the same effect. */
void sleep_at_node(Order *order, uint32_t node);
bool sleep_holds(const Order *order, ProcessName process);
void sleep_step(Order *order); /* wakes those that depend on `notes` */
bool sleep_empty(const Order *order);

/* ---- Waiting in a loop (idle_loops.c) ---- */
/* After a step that began with `in`: does the process repeat itself without any effect? */
typedef enum { POLL_NONE, POLL_SAME, POLL_LONG } PollAnswer;
void poll_before_step(Process *process, const Instruction *in, uint32_t depth);
void poll_instruction(Process *process, const Instruction *in, LaneMask lanes);
/* *first_step and *clock: where the round began. */
PollAnswer poll_after_step(Process *process, uint32_t *first_step, const PriorSteps **clock);
void poll_free(Process *process);
bool poll_sees(const Process *process, const Note *items, uint32_t count);

/* ---- What an order has changed (result.c) ---- */
void result_begin(void);
void result_end(const Order *order, OrderResult *result);

/* ---- Launches (explore.c) ---- */
/* It takes launches over by launches.take_over (machine/launch.h). For tests: called in the child at the end of each order that is not redundant. */
typedef struct {
  void (*observer)(const OrderResult *result);
  bool without_reduction;
} ExploreTest;
extern ExploreTest explore_test;
