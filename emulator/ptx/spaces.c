/* spaces.c: does a variable that an operand names lie in the state space that the instruction
 * names? As ptxas, which refuses ld.shared [x] of a global x. A register may hold any address. */
#include <string.h>

#include "ptx/program.h"

enum { SPACES_NAMED = 4 };

Space space_named(const char *modifier) {
  static const struct {
    const char *name;
    Space space;
  } spaces[] = {
      {"global", SPACE_GLOBAL},      {"shared", SPACE_SHARED},
      {"shared::cta", SPACE_SHARED}, {"shared::cluster", SPACE_SHARED},
      {"const", SPACE_CONST},        {"local", SPACE_LOCAL},
      {"param", SPACE_PARAM},        {"param::entry", SPACE_PARAM},
      {"param::func", SPACE_LOCAL},
  };
  for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
    if (strcmp(spaces[i].name, modifier) == 0) return spaces[i].space;
  return SPACE_GENERIC;
}

/* Instructions whose addresses are those of one space, whether they say so or not. */
static Space implied_space(const PtxStatement *statement) {
  if (has_trait(statement, MBARRIER | SHARED_ADDRESS)) return SPACE_SHARED;
  if (strcmp(statement->modifiers[0], "prefetchu") == 0) return SPACE_GLOBAL;
  return has_modifier(statement, "mbarrier::complete_tx::bytes") ? SPACE_SHARED : SPACE_GENERIC;
}

/* What ptxas refuses of an address in this space; SPACE_GENERIC: the instruction names none. */
static const char *address_problem(const PtxStatement *statement, const Operand *operand,
                                   Space space) {
  if (operand->kind != OPERAND_ADDRESS) return NULL;
  if (operand->number && space != SPACE_LOCAL)
    return "only an address in .local can be written as a number";
  bool narrow = !operand->constant && operand->variable == SPACE_GENERIC && operand->bytes == 4;
  bool wide =
      has_trait(statement, MBARRIER | WIDE_ADDRESS) && !has_modifier(statement, "tensormap");
  if (narrow && wide && (space == SPACE_GENERIC || space == SPACE_GLOBAL))
    return "an address in .global, or of no space, has 64 bits";
  return NULL;
}

/* The spaces are named in the order of the addresses. */
bool spaces_agree(Decoder *decoder, const PtxStatement *statement, const Instruction *in) {
  Space named[SPACES_NAMED] = {0};
  int count = 0, address = 0;
  for (int i = 1; i < statement->modifier_count && count < SPACES_NAMED; i++) {
    Space space = space_named(statement->modifiers[i]);
    if (space != SPACE_GENERIC) named[count++] = space;
  }
  bool plain = has_trait(statement, PLAIN_ADDRESS);
  for (int i = 0; i < in->operand_count; i++) {
    const Operand *operand = &in->operand[i];
    bool is_address = operand->kind == OPERAND_ADDRESS || (plain && i == 1);
    if (!is_address) continue;
    const char *bad =
        address_problem(statement, operand, address < count ? named[address] : SPACE_GENERIC);
    if (bad) return decoder_error(decoder, statement, "%s", bad);
    Space wanted = address < count ? named[address] : implied_space(statement);
    address++;
    if (operand->variable == SPACE_GENERIC || operand->variable == wanted) continue;
    if (plain && has_modifier(statement, "to")) continue; /* decode_cvta refuses most */
    bool any = operand->variable != SPACE_CONST || strcmp(statement->modifiers[0], "fence") == 0;
    if (wanted == SPACE_GENERIC && any) continue;
    return decoder_error(decoder, statement,
                         "the variable lies in another state space than the instruction accesses");
  }
  return true;
}
