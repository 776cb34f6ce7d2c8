/* alu_generate.c: makes a CUDA program of alu_cases.txt: one kernel for each instruction.
 *
 *   alu_generate alu_cases.txt > alu_cases.cu
 *
 * The program's main is in alu_main.cuh. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expand_form.h"

enum { TEXT = 1024 };

static int case_count;
static char table[4 << 20]; /* the list of cases, printed at the end */
static size_t table_used;

static const char *constraint(char letter) {
  if (strchr("hxye", letter)) return "h";
  if (strchr("lm", letter)) return "l";
  if (letter == 'f') return "f";
  return letter == 'd' ? "d" : "r";
}

/* How an operand comes out of the 64 bits of its input. */
static const char *input(char letter) {
  if (strchr("hxye", letter)) return "(unsigned short)";
  if (letter == 'l') return "";
  if (letter == 'f') return "__int_as_float((int)";
  if (letter == 'd') return "__longlong_as_double((long long)";
  return letter == 'p' ? "1u & (unsigned)" : "(unsigned)";
}

static void add(char *text, const char *piece) {
  if (strlen(text) + strlen(piece) >= TEXT) {
    fprintf(stderr, "alu_generate: a case of more than %d characters\n", TEXT);
    exit(2);
  }
  strcat(text, piece);
}

static const char own_shared[] =
    "  __shared__ unsigned long long words[2 * 128];\n"
    "  unsigned shared = (unsigned)__cvta_generic_to_shared(words + 2 * threadIdx.x);\n";

/* The assembly of a case that only names its instruction. */
static void assemble(char *text, char result, const char *operands, const char *instruction) {
  char piece[64];
  text[0] = '\0';
  add(text, "{ .reg .pred d, q, p1, p2, p3, p4; .reg .b32 t; ");
  for (int i = 0; operands[i]; i++) {
    if (operands[i] != 'p') continue;
    snprintf(piece, sizeof piece, "setp.ne.u32 p%d, %%%d, 0; ", i + 1, i + 1);
    add(text, piece);
  }
  add(text, instruction);
  add(text, result == 'p' ? " d" : result == 'P' ? " d|q" : " %0");
  for (int i = 0; operands[i]; i++) {
    snprintf(piece, sizeof piece, operands[i] == 'p' ? ", p%d" : ", %%%d", i + 1);
    add(text, piece);
  }
  add(text, ";");
  if (result == 'p' || result == 'P') add(text, " selp.u32 %0, 1, 0, d;");
  if (result == 'P') add(text, " selp.u32 t, 2, 0, q; or.b32 %0, %0, t;");
  add(text, " }");
}

/* A line of the list, expanded. */
static void emit(const char *line) {
  char text[TEXT], result, operands[8];
  int at = 0;
  if (sscanf(line, "%c %7s %n", &result, operands, &at) != 2 || !line[at]) {
    fprintf(stderr, "alu_generate: no instruction in \"%s\"\n", line);
    exit(2);
  }
  const char *instruction = line + at;
  if (strstr(instruction, "%0"))
    snprintf(text, sizeof text, "%s", instruction);
  else
    assemble(text, result, operands, instruction);
  const char *type = strchr("hxy", result) ? "unsigned short"
                     : result == 'l'       ? "unsigned long long"
                     : result == 'f'       ? "float"
                     : result == 'd'       ? "double"
                                           : "unsigned";
  printf(
      "__global__ void case_%d(Inputs in, unsigned long long *out) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n%s  %s r;\n  asm volatile(\"%s\"\n"
      "               : \"=%s\"(r)\n               : ",
      case_count, strchr(operands, 's') ? own_shared : "", type, text, constraint(result));
  for (int i = 0; operands[i]; i++) {
    if (operands[i] == 'm' || operands[i] == 's') {
      printf("%s%s", i ? ", " : "",
             operands[i] == 'm' ? "\"l\"(out + COUNT + 2 * i)" : "\"r\"(shared)");
      continue;
    }
    bool call = operands[i] == 'f' || operands[i] == 'd';
    printf("%s\"%s\"(%s(in.value[%d][i])%s)", i ? ", " : "", constraint(operands[i]),
           input(operands[i]), i, call ? ")" : "");
  }
  printf(");\n  out[i] = %s;\n}\n", result == 'f'   ? "(unsigned)__float_as_int(r)"
                                    : result == 'd' ? "(unsigned long long)__double_as_longlong(r)"
                                                    : "r");
  table_used += (size_t)snprintf(table + table_used, sizeof table - table_used,
                                 "    {case_%d, \"%s\", '%c', \"%s\"},\n", case_count, instruction,
                                 result, operands);
  case_count++;
}

int main(int argc, char **argv) {
  FILE *cases = argc == 2 ? fopen(argv[1], "r") : NULL;
  if (!cases) {
    fprintf(stderr, "usage: alu_generate alu_cases.txt > alu_cases.cu\n");
    return 2;
  }
  printf("/* Made by alu_generate from alu_cases.txt. */\n#include \"alu_main.cuh\"\n");
  char line[TEXT];
  while (fgets(line, sizeof line, cases)) {
    line[strcspn(line, "\n")] = '\0';
    if (line[0] == '#' || line[0] == '\0') continue;
    expand_form(line, ',', emit);
  }
  fclose(cases);
  printf(
      "static const Case cases[] = {\n%s};\n"
      "int main(int argc, char **argv) {\n"
      "  return run_cases(argc, argv, cases, %d);\n}\n",
      table, case_count);
  return 0;
}
