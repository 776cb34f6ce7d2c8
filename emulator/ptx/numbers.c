/* numbers.c: the numbers of PTX and the constant expressions that are made of them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/program.h"

static int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

static uint64_t parse_digits(Decoder *decoder, unsigned base, int at_most) {
  uint64_t value = 0;
  int count = 0;
  while (digit_value(*decoder->at) < (int)base && (at_most == 0 || count < at_most)) {
    value = value * base + (unsigned)digit_value(*decoder->at++);
    count++;
  }
  if (count == 0 || (at_most && count != at_most))
    parse_fail(decoder, "a number with %s digits", count ? "too few" : "no");
  return value;
}

static Literal parse_number(Decoder *decoder) {
  const char *at = decoder->at;
  Literal literal = {.bytes = 8};
  if (at[0] == '0' && (at[1] == 'f' || at[1] == 'F')) {
    decoder->at += 2;
    literal.value = parse_digits(decoder, 16, 8);
    literal.floating = true;
    literal.bytes = 4;
    return literal;
  }
  if (at[0] == '0' && (at[1] == 'd' || at[1] == 'D')) {
    decoder->at += 2;
    literal.value = parse_digits(decoder, 16, 16);
    literal.floating = true;
    return literal;
  }
  const char *end = at;
  while (isdigit((unsigned char)*end)) end++;
  if (*end == '.' || ((*end == 'e' || *end == 'E') && at[1] != 'x' && at[1] != 'X')) {
    char *behind;
    double value = strtod(at, &behind);
    if (behind == at) parse_fail(decoder, "not a number");
    decoder->at = behind;
    memcpy(&literal.value, &value, 8);
    literal.floating = true;
    return literal;
  }
  if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X')) {
    decoder->at += 2;
    literal.value = parse_digits(decoder, 16, 0);
  } else if (at[0] == '0' && (at[1] == 'b' || at[1] == 'B')) {
    decoder->at += 2;
    literal.value = parse_digits(decoder, 2, 0);
  } else if (at[0] == '0' && isdigit((unsigned char)at[1])) {
    literal.value = parse_digits(decoder, 8, 0);
  } else {
    literal.value = parse_digits(decoder, 10, 0);
  }
  literal.is_unsigned = literal.value > INT64_MAX;
  if (*decoder->at == 'U') {
    decoder->at++;
    literal.is_unsigned = true;
  }
  return literal;
}

/* ---- Constant expressions: C's operators and precedence, on .s64, .u64 and .f64 ----
 * Where ptxas differs from the PTX ISA's table, this follows ptxas: &, | and ^ give .u64 only if an
 * operand is .u64, ?: has the type of the operand that it chooses, the result of %% is .u64, and
 * only the low six bits of a shift's distance count. */
enum { EXPRESSION_DEPTH = 64 };
static Literal parse_choice(Decoder *decoder);
static Literal parse_unary(Decoder *decoder);

static Literal apply_sign(Decoder *decoder, char operator, Literal literal) {
  if (operator== '+') return literal;
  if (literal.floating && operator!= '-')
    parse_fail(decoder, "the operator %c needs an integer", operator);
  if (literal.floating)
    literal.value ^= literal.bytes == 4 ? 0x80000000ull : 0x8000000000000000ull;
  else if (operator== '-')
    literal.value = -literal.value;
  else
    literal.value = operator== '~' ? ~literal.value : !literal.value;
  if (operator!= '-') literal.is_unsigned = operator== '~';
  return literal;
}

/* (.s64) or (.u64), whose opening parenthesis is behind us. */
static Literal parse_cast(Decoder *decoder) {
  const char *type = accept_directive(decoder);
  if (!type || (strcmp(type, "s64") != 0 && strcmp(type, "u64") != 0))
    parse_fail(decoder, "a cast is (.s64) or (.u64)");
  expect_char(decoder, ')');
  Literal literal = parse_unary(decoder);
  if (literal.floating) parse_fail(decoder, "the cast (.%s) needs an integer", type);
  literal.is_unsigned = *type == 'u';
  return literal;
}

static Literal parse_unary(Decoder *decoder) {
  skip_space(decoder);
  if (++decoder->depth > EXPRESSION_DEPTH) parse_fail(decoder, "an expression nested too deeply");
  Literal literal = {.bytes = 8};
  const char c = *decoder->at;
  if (c == '-' || c == '+' || c == '!' || c == '~') {
    decoder->at++;
    literal = apply_sign(decoder, c, parse_unary(decoder));
  } else if (accept_char(decoder, '(')) {
    skip_space(decoder);
    if (decoder->at[0] == '.' && !isdigit((unsigned char)decoder->at[1])) {
      literal = parse_cast(decoder);
    } else {
      literal = parse_choice(decoder);
      expect_char(decoder, ')');
    }
  } else if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)decoder->at[1]))) {
    literal = parse_number(decoder);
  } else if (strncmp(decoder->at, "WARP_SZ", 7) == 0 && !isalnum((unsigned char)decoder->at[7])) {
    decoder->at += 7;
    literal.value = LANES;
  } else {
    parse_fail(decoder, "expected a number");
  }
  decoder->depth--;
  return literal;
}

/* The longer of two operators that begin alike comes first. */
static const struct {
  char text[3];
  int precedence;
} binary_operators[] = {{"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5},  {"==", 6},
                        {"!=", 6}, {"<=", 7}, {">=", 7}, {"<<", 8}, {">>", 8}, {"<", 7},
                        {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};

/* order: -1, 0 or 1, as the left operand is less than, equal to or greater than the right one. */
static bool compares(const char *operator, int order) {
  switch (*operator) {
    case '=':
      return order == 0;
    case '!':
      return order != 0;
    case '<':
      return order < (operator[1] ? 1 : 0);
    default:
      return order > (operator[1] ? -1 : 0);
  }
}

static bool is_shift(const char *operator) {
  return operator[1] == * operator&& strchr("<>", *operator);
}

static uint64_t shift_constant(const char *operator, Literal left, uint64_t distance) {
  if (*operator== '<') return left.value << (distance & 63);
  return left.is_unsigned ? left.value >> (distance & 63)
                          : (uint64_t)((int64_t)left.value >> (distance & 63));
}

static uint64_t divide_constants(Decoder *decoder, bool is_unsigned, uint64_t a, uint64_t b) {
  if (b == 0) parse_fail(decoder, "a constant expression divides by zero");
  if (is_unsigned) return a / b;
  return b == UINT64_MAX ? -a : (uint64_t)((int64_t)a / (int64_t)b); /* INT64_MIN / -1 traps */
}

static Literal apply_to_integers(Decoder *decoder, const char *operator, Literal left,
                                 Literal right) {
  const uint64_t a = left.value, b = right.value;
  const bool is_unsigned = left.is_unsigned || right.is_unsigned;
  if (is_shift(operator)) {
    left.value = shift_constant(operator, left, b);
    return left;
  }
  if (strcmp(operator, "&&") == 0) return (Literal){.bytes = 8, .value = a && b};
  if (strcmp(operator, "||") == 0) return (Literal){.bytes = 8, .value = a || b};
  Literal out = {.bytes = 8, .is_unsigned = is_unsigned || *operator== '%' };
  switch (*operator) {
    case '+':
      out.value = a + b;
      return out;
    case '-':
      out.value = a - b;
      return out;
    case '*':
      out.value = a * b;
      return out;
    case '/':
      out.value = divide_constants(decoder, is_unsigned, a, b);
      return out;
    case '%':
      out.value = a - b * divide_constants(decoder, true, a, b);
      return out;
    case '^':
      out.value = a ^ b;
      return out;
    case '&':
      out.value = a & b;
      return out;
    case '|':
      out.value = a | b;
      return out;
  }
  const bool less = is_unsigned ? a < b : (int64_t)a < (int64_t)b;
  return (Literal){.bytes = 8, .value = compares(operator, a == b ? 0 : less ? -1 : 1)};
}

static Literal apply_to_floats(Decoder *decoder, const char *operator, Literal left,
                               Literal right) {
  if (strchr("|&^%", *operator) || is_shift(operator))
    parse_fail(decoder, "the operator %s needs integers", operator);
  double a, b;
  memcpy(&a, &left.value, sizeof a);
  memcpy(&b, &right.value, sizeof b);
  if (!strchr("+-*/", *operator))
    return (Literal){.bytes = 8, .value = compares(operator, a == b ? 0 : a<b ? -1 : 1)};
  if (*operator== '/' && b == 0) parse_fail(decoder, "a constant expression divides by zero");
  const double result = *operator== '+'    ? a + b
                        : * operator== '-' ? a - b
                        : * operator== '*' ? a * b
                                           : a / b;
  memcpy(&left.value, &result, sizeof result);
  return left;
}

static Literal apply_operator(Decoder *decoder, const char *operator, Literal left, Literal right) {
  if (left.bytes != 8 || right.bytes != 8)
    parse_fail(decoder, "the operator %s does not take 0f numbers: write them as .f64", operator);
  if (left.floating != right.floating)
    parse_fail(decoder, "the operator %s needs two integers or two .f64 numbers", operator);
  return left.floating ? apply_to_floats(decoder, operator, left, right)
                       : apply_to_integers(decoder, operator, left, right);
}

static Literal parse_binary(Decoder *decoder, int lowest) {
  Literal left = parse_unary(decoder);
  for (;;) {
    skip_space(decoder);
    size_t found = 0;
    const size_t count = sizeof binary_operators / sizeof *binary_operators;
    while (found < count && strncmp(decoder->at, binary_operators[found].text,
                                    strlen(binary_operators[found].text)) != 0)
      found++;
    if (found == count || binary_operators[found].precedence < lowest) return left;
    const char *operator= binary_operators[found].text;
    decoder->at += strlen(operator);
    left = apply_operator(decoder, operator, left,
                          parse_binary(decoder, binary_operators[found].precedence + 1));
  }
}

static Literal parse_choice(Decoder *decoder) {
  if (++decoder->depth > EXPRESSION_DEPTH) parse_fail(decoder, "an expression nested too deeply");
  Literal literal = parse_binary(decoder, 1);
  if (accept_char(decoder, '?')) {
    if (literal.floating) parse_fail(decoder, "the condition before ? must be an integer");
    const Literal yes = parse_choice(decoder);
    expect_char(decoder, ':');
    const Literal no = parse_choice(decoder);
    if (yes.floating != no.floating)
      parse_fail(decoder, "what ?: chooses from must be two integers or two .f64 numbers");
    literal = literal.value ? yes : no;
  }
  decoder->depth--;
  return literal;
}

Literal parse_literal(Decoder *decoder) { return parse_choice(decoder); }

static uint64_t integer_of(Decoder *decoder, Literal literal) {
  if (literal.floating) parse_fail(decoder, "expected an integer");
  return literal.value;
}

uint64_t parse_integer(Decoder *decoder) { return integer_of(decoder, parse_choice(decoder)); }

uint64_t parse_count(Decoder *decoder) { return integer_of(decoder, parse_unary(decoder)); }
