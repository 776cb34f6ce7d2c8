/* program.h: what the front end (parse.c, registers.c, decode.c, module.c) and the machine share
 * about a loaded PTX text. The other folders see only ptx.h and module.h.
 *
 *   parse.c      text -> symbols, and for each function its statements with operands by name; with
 *                parse_variable.c, parse_statement.c and parse_source.c
 *   registers.c  which registers live at the same time -> slots
 *   decode.c     call graph -> frames; the instruction rows make Instructions of the statements
 *   module.c     variables in memory, entries by name */
#pragma once

#include <setjmp.h>

#include "base/warp.h"
#include "ptx/ptx.h"

/* ---- Memory that is freed all at once ---- */
typedef struct ArenaChunk ArenaChunk;
typedef struct {
  ArenaChunk *chunks;
} Arena;
void *arena_allocate(Arena *arena, size_t bytes); /* zeroed */
void arena_free(Arena *arena);

/* ---- Registers ---- */
typedef enum { CLASS_PREDICATE, CLASS_32, CLASS_64, CLASS_128, CLASS_COUNT } RegisterClass;
extern const uint8_t class_slots[CLASS_COUNT]; /* of a register; predicates are numbered apart */
typedef struct {
  uint8_t class;
  uint8_t bytes;
  bool stable;          /* written by an asynchronous instruction: never shares its slot */
  bool unwritten;       /* some path reads it before anything has written it */
  uint32_t first, last; /* the range of instructions in which it is live */
  uint32_t slot;        /* within its class and function */
} Register;

/* Columns that the machine fills: literals and symbols (once), special registers (per block or when
 * read). All columns of a module are numbered in one list. */
typedef enum {
  COLUMN_LITERAL,
  COLUMN_SHARED_SYMBOL, /* offset in the kernel's shared memory, with the block's rank, plus a number */
  COLUMN_FRAME,         /* where the lane's .local frame begins */
  COLUMN_EXTERN,        /* address of a variable that is not defined yet, plus an offset */
  COLUMN_SPECIAL
} ColumnKind;
typedef enum {
  SPECIAL_TID_X,
  SPECIAL_TID_Y,
  SPECIAL_TID_Z,
  SPECIAL_NTID_X,
  SPECIAL_NTID_Y,
  SPECIAL_NTID_Z,
  SPECIAL_CTAID_X,
  SPECIAL_CTAID_Y,
  SPECIAL_CTAID_Z,
  SPECIAL_NCTAID_X,
  SPECIAL_NCTAID_Y,
  SPECIAL_NCTAID_Z,
  SPECIAL_LANEID,
  SPECIAL_WARPID,
  SPECIAL_NWARPID,
  SPECIAL_SMID,
  SPECIAL_NSMID,
  SPECIAL_GRIDID,
  SPECIAL_CLUSTERID_X,
  SPECIAL_CLUSTERID_Y,
  SPECIAL_CLUSTERID_Z,
  SPECIAL_NCLUSTERID_X,
  SPECIAL_NCLUSTERID_Y,
  SPECIAL_NCLUSTERID_Z,
  SPECIAL_CLUSTER_CTAID_X,
  SPECIAL_CLUSTER_CTAID_Y,
  SPECIAL_CLUSTER_CTAID_Z,
  SPECIAL_CLUSTER_NCTAID_X,
  SPECIAL_CLUSTER_NCTAID_Y,
  SPECIAL_CLUSTER_NCTAID_Z,
  SPECIAL_CLUSTER_CTARANK,
  SPECIAL_CLUSTER_NCTARANK,
  SPECIAL_IS_EXPLICIT_CLUSTER,
  SPECIAL_LANEMASK_EQ,
  SPECIAL_LANEMASK_LE,
  SPECIAL_LANEMASK_LT,
  SPECIAL_LANEMASK_GE,
  SPECIAL_LANEMASK_GT,
  SPECIAL_DYNAMIC_SMEM_SIZE,
  SPECIAL_TOTAL_SMEM_SIZE,
  SPECIAL_AGGR_SMEM_SIZE,
  SPECIAL_RESERVED_SMEM_BEGIN,
  SPECIAL_RESERVED_SMEM_END,
  SPECIAL_RESERVED_SMEM_CAP,
  SPECIAL_ENVREG,      /* %envreg0 to 31, by the column's value */
  SPECIAL_FIRST_CLOCK, /* these are read again at every use */
  SPECIAL_CLOCK = SPECIAL_FIRST_CLOCK,
  SPECIAL_CLOCK_HI,
  SPECIAL_CLOCK64,
  SPECIAL_GLOBALTIMER,
  SPECIAL_GLOBALTIMER_LO,
  SPECIAL_GLOBALTIMER_HI
} Special;
typedef struct Symbol Symbol;
typedef struct {
  uint8_t kind;
  uint8_t bytes; /* 4, 8 or 16 */
  uint16_t special;
  uint16_t slot;
  uint64_t value;
  const Symbol *symbol;
} Column;

/* ---- Symbols ---- */
typedef enum {
  SYMBOL_VARIABLE, /* .global and .const */
  SYMBOL_SHARED,
  SYMBOL_LOCAL, /* .local, and .param inside functions: offset in the frame */
  SYMBOL_ENTRY_PARAMETER,
  SYMBOL_REGISTER,
  SYMBOL_REGISTERS, /* a range %r<100> */
  SYMBOL_VECTOR,    /* ".reg .v2 .f32 v": v.x and v.y, range_count of them */
  SYMBOL_FUNCTION,
  SYMBOL_PROTOTYPE,
  SYMBOL_TARGETS /* .branchtargets */
} SymbolKind;
typedef struct Initialiser Initialiser;
struct Symbol {
  const char *name;
  Symbol *next; /* in its hash bucket */
  uint32_t hash;
  uint8_t kind;
  uint8_t element_bytes;
  uint8_t class;
  uint8_t numbers; /* REGISTER, REGISTERS, VECTOR: DeclaredNumbers */
  uint8_t type;    /* VARIABLE: a Type */
  bool constant_space, external, weak, parameter;
  bool in_scope;   /* declared in a function */
  bool file_local; /* neither .visible nor .extern nor .weak: not visible to other texts */
  uint32_t unit;   /* which text declared it */
  uint32_t scope;  /* which braces of its function; 0: parameters and the outermost ones */
  uint32_t alignment;
  uint64_t bytes;  /* 0 for "extern .shared x[]" */
  uint64_t offset; /* LOCAL, ENTRY_PARAMETER */
  uint8_t *memory; /* VARIABLE: its bytes, registered as device memory */
  uint8_t *block;  /* what to free */
  Initialiser *initialisers;
  uint32_t first_register, range_count; /* REGISTER: its number; REGISTERS: the range's number */
  uint32_t number;                      /* SHARED: index in Module.shared */
  Function *function;
  uint32_t *labels; /* TARGETS: uses of labels, then instructions */
  uint32_t label_count;
  uint32_t line;
};

typedef struct {
  uint32_t *items;
  uint32_t count, capacity;
} NumberList;

/* ---- Functions ---- */
/* A register that some path through a function reads before anything has written it. */
typedef struct {
  uint16_t slot;
  uint8_t bytes; /* 0: a predicate */
} UnwrittenRegister;

typedef struct {
  uint32_t offset, bytes; /* in the frame (functions) or the parameter buffer (entries) */
} ParameterPlace;

/* A statement that has not been decoded yet. Until registers have slots, an operand's `target` is
 * the number of a register, a column or a label reference. */
typedef struct {
  PtxStatement statement;
  Operand *operand;
  uint32_t operand_count;
  uint32_t results; /* how many operands it writes, which come first; 0 for inserted ones */
  uint32_t guard;   /* register number, NO_REGISTER: none */
  bool guard_negated;
  bool pair; /* a "|" joins its first two operands */
  bool leader;
  SourceLine source;
  struct CallSite *call;
  const Symbol *targets; /* brx.idx */
  uint8_t inserted;      /* InsertedKind */
} Draft;
enum { NO_REGISTER = 0xffffffffu };
/* Instructions that are not in the text but inserted before or after another one. */
typedef enum {
  INSERTED_NOTHING,  /* the statement's own instruction */
  INSERTED_CONVERGE, /* waits until the whole warp has arrived */
  INSERTED_READ_CLOCK,
  INSERTED_LAND /* lands operations in flight */
} InsertedKind;

/* What `target` refers to in a draft. */
typedef enum { REFER_REGISTER = 1, REFER_COLUMN, REFER_LABEL } Reference;

typedef struct CallSite {
  Function *callee;          /* NULL: through the register in operand[0] */
  ParameterPlace *arguments; /* in the caller's frame */
  ParameterPlace *results;
  uint32_t argument_count, result_count;
} CallSite;

struct Function {
  FunctionTraits traits;
  Module *module;
  const char *name;
  bool entry, defined, address_taken, has_indirect_calls;
  bool promised;    /* declared without .extern, and not defined yet */
  uint32_t number;  /* in Module.functions */
  uint64_t address; /* the value of a pointer to it */
  ParameterPlace *parameters, *results;
  uint32_t parameter_count, result_count;

  Draft *drafts;
  uint32_t draft_count, draft_capacity;
  Register *registers;
  uint32_t register_count, register_capacity;
  uint32_t label_count;

  Instruction *code;
  uint32_t count;
  uint32_t frame[CLASS_COUNT]; /* how many of each class */
  uint32_t base[CLASS_COUNT];
  uint32_t component;   /* of the call graph: functions that may call each other */
  uint32_t frame_bytes; /* bytes of .local memory per call */
  bool refusal_passed;
  const char *refusal; /* why it or a function that it calls cannot be decoded; NULL: no problem */
  NumberList callees;  /* numbers of functions */
  NumberList shared;   /* numbers of .shared variables that it names */
  UnwrittenRegister *unwritten;
  uint32_t unwritten_count;

  /* for entries, including all functions they may call */
  uint32_t *shared_offsets; /* by number of the .shared variable */
  NumberList columns;       /* which columns it needs filled */
  uint32_t local_bytes;
  uint32_t declared_threads; /* .maxntid or .reqntid; 0: neither */
  uint32_t minimum_ctas;     /* .minnctapersm */
  uint32_t most_registers;   /* .maxnreg */
};

struct Module {
  Arena arena;
  const char *name;
  char *text;    /* the text being read */
  uint32_t unit; /* its number, from 1; 0: all texts have been read */
  Symbol **buckets;
  uint32_t bucket_count;
  Function **functions;
  uint32_t function_count, function_capacity;
  Symbol **shared;
  uint32_t shared_count, shared_capacity;
  Symbol **globals;
  uint32_t global_count, global_capacity;
  Column *columns;
  uint32_t column_count, column_capacity;
  uint32_t *column_table; /* hash of literals */
  uint32_t column_table_size;
  const char **files;
  uint32_t file_count;
  uint32_t slots; /* of a warp, in total */
  uint32_t predicates;
  uint32_t frame_column;              /* the COLUMN_FRAME column */
  uint32_t region_first[CLASS_COUNT]; /* where each class's slots begin */
  uint32_t region_size[CLASS_COUNT];
  bool debug;             /* compiled with -G */
  bool for_other_target;  /* its .target is not sm_90a */
  bool asks_for_reserved; /* reads %reserved_smem_offset_... */
  bool columns_final;     /* columns have slots; new ones get theirs at once */
};

/* ---- Where inlined functions were called ---- */
typedef struct {
  uint32_t file, line, column;
} SourcePlace;
typedef struct Inlining Inlining;
struct Inlining {
  SourcePlace inner, outer;
  const char *inner_file, *outer_file;
  const Inlining *caller; /* where the function that holds `outer` was inlined; NULL: it was not */
  Inlining *before;       /* one of the same bucket that a .loc has named less recently */
  uint32_t depth;         /* how many calls lead there */
};
typedef struct {
  SourcePlace inner, outer;
  bool inlined;             /* is there an `outer`? */
  uint32_t first;           /* the draft that follows */
  const Inlining *inlining; /* once it is found out */
} LocDirective;
enum { INLINING_BUCKETS = 256, MAX_INLINING_DEPTH = 64 };

/* ---- Parser and decoder: one object for both ---- */
struct Decoder {
  Module *module;
  char *error;
  size_t error_bytes;
  jmp_buf failed;

  const char *at;
  uint32_t line;
  int depth; /* nesting of expressions and braces, bounded */
  Arena scratch;

  Function *function; /* the function being parsed or decoded */
  LocDirective *locs; /* of the function */
  uint32_t loc_count, loc_capacity;
  Inlining *inlinings[INLINING_BUCKETS]; /* of the function so far, by `inner` */

  Symbol **undo; /* symbols of the open scopes, innermost last */
  uint32_t undo_count, undo_capacity;
  uint32_t *scope_parent;      /* of each scope of the function */
  const char *parameter_twice; /* the name of two of its parameters */
  uint32_t scope_count, scope_capacity;
  uint32_t scope; /* the open one */

  struct Label *labels; /* of the function */
  uint32_t label_count, label_capacity;
  struct LabelUse *label_uses;
  uint32_t label_use_count, label_use_capacity;
  struct RangeRegister *range_registers; /* hash: which register is number n of range r */
  uint32_t range_register_count, range_register_size;
  uint32_t range_count;
  uint64_t frame_cursor; /* .local bytes in use by the open scopes */
};

/* decoder.c: writes the decoder's error: where (`text` is the line of PTX) and why. */
void decoder_describe(Decoder *decoder, uint32_t line, const char *text, const char *reason);
/* ptx.c: lexer */
_Noreturn void parse_fail(Decoder *decoder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void *arena_grow(Decoder *decoder, void *items, uint32_t count, uint32_t *capacity,
                 size_t item_bytes);
char *copy_text(Decoder *decoder, const char *first, size_t bytes);
char skip_space(Decoder *decoder); /* returns the character behind */
bool accept_char(Decoder *decoder, char c);
void expect_char(Decoder *decoder, char c);
bool at_identifier(const Decoder *decoder);
const char *parse_identifier(Decoder *decoder); /* fails when there is none */
const char *accept_directive(Decoder *decoder); /* ".name" without the dot, or NULL */
typedef struct {
  uint64_t value;
  bool floating;
  bool is_unsigned; /* .u64, if it is an integer */
  uint8_t bytes;    /* 8, or 4 for 0f... */
} Literal;
Literal parse_literal(Decoder *decoder);  /* a constant expression */
uint64_t parse_integer(Decoder *decoder); /* a constant expression */
uint64_t parse_count(Decoder *decoder);   /* a number, for "<3>": there > is no operator */
char *parse_string(Decoder *decoder);
void parse_opcode(Decoder *decoder, PtxStatement *statement);
void set_opcode(Decoder *decoder, PtxStatement *statement, const char *opcode);
uint32_t hash_text(const char *text);
/* only if it is not in the list yet */
bool number_add(Decoder *decoder, NumberList *list, uint32_t number);

/* parse.c */
void parse_module(Decoder *decoder);

/* parse_variable.c */
typedef struct {
  uint8_t bytes, class, vector;
  uint8_t numbers; /* DeclaredNumbers */
  uint8_t type;    /* a Type */
  bool pointer;    /* .ptr */
  bool managed;
  uint32_t alignment;
} DeclaredType;
typedef struct {
  bool external, weak, file_local, common;
} VariableScope;
/* [.align N] [.attribute(...)] [.v2] .type [.ptr [.space] [.align N]] in any order that occurs */
DeclaredType parse_type(Decoder *decoder);
enum { DIMENSIONS_MOST = 8 };
typedef struct {
  uint64_t size[DIMENSIONS_MOST];
  uint64_t elements; /* in all; with [] those of one row, or none */
  uint32_t count;
  bool open; /* the first is [] */
} Dimensions;
/* name[4][2] */
Dimensions parse_dimensions(Decoder *decoder);
/* What follows .attribute: (.managed), (.unified(1, 2)). Is .managed there? */
bool parse_attribute(Decoder *decoder);
void parse_registers(Decoder *decoder);
void parse_variable(Decoder *decoder, const char *space, VariableScope scope);
/* Reserves space in the function's frame. */
uint64_t frame_place(Decoder *decoder, uint64_t bytes, uint64_t alignment);
uint64_t aligned(uint64_t offset, uint64_t alignment);

/* parse_source.c */
void find_files(Decoder *decoder);
void parse_file(Decoder *decoder);
void parse_loc(Decoder *decoder);
void find_source_lines(Decoder *decoder);

/* parse_statement.c */
Draft *add_draft(Decoder *decoder);
void parse_instruction(Decoder *decoder);

/* The next multiple of a power of two. */
static inline uint64_t align_up(uint64_t value, uint64_t alignment) {
  return alignment > 1 ? (value + alignment - 1) & ~(alignment - 1) : value;
}

/* symbols.c */
Symbol *new_symbol(Decoder *decoder, const char *name, SymbolKind kind);
void declare(Decoder *decoder, Symbol *symbol, bool in_scope);
/* until decoder->undo has `down_to` entries */
void forget_symbols(Decoder *decoder, uint32_t down_to);
uint32_t new_register(Decoder *decoder, unsigned class, unsigned bytes);
const Symbol *find_range(const Decoder *decoder, const char *name, uint32_t *index);
uint32_t register_of_range(Decoder *decoder, const Symbol *range, uint32_t index);
uint32_t new_column(Decoder *decoder, Column column);
bool special_operand(Decoder *decoder, const char *name, Operand *out);
void define_label(Decoder *decoder, const char *name);
uint32_t use_label(Decoder *decoder, const char *name);
uint32_t *resolve_labels(Decoder *decoder);
Symbol *find_symbol(const Module *module, const char *name);
static inline const Module *module_of(const Cluster *cluster) {
  return cluster->launch->kernel->module;
}
/* NULL: not the address of a function */
const Function *function_at(const Module *module, uint64_t address);
uint32_t column_of_literal(Decoder *decoder, uint64_t value, unsigned bytes);
uint32_t column_of_extern(Decoder *decoder, const Symbol *symbol, uint64_t addend);
uint32_t column_of_shared(Decoder *decoder, const Symbol *symbol, unsigned bytes, uint64_t addend);

struct Initialiser {
  Initialiser *next;
  uint64_t offset;
  uint8_t bytes;
  uint8_t shift; /* "0xff00(symbol)": which byte */
  uint8_t masked;
  int64_t addend;
  const char *symbol; /* NULL: addend is the value */
  uint32_t line;
};

/* registers.c */
void allocate_registers(Decoder *decoder, Function *function);
/* decode.c */
void decode_module(Decoder *decoder);
/* variables.c */
void allocate_variable(Decoder *decoder, Symbol *symbol);
void fill_variables(Decoder *decoder); /* with their initial values */
void resolve_externs(Module *module);
#define FUNCTION_ADDRESS 0x0f00000000000000ull
