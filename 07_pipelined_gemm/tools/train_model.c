/* train_model: the training of fit_model.py, which compiles it and writes its input: what the networks and the terms of
 * gemm_choose.cuh should be for times that were measured. Takes some minutes.
 *
 *   train_model INPUT PARAMETERS
 *
 * An entry is a product with a configuration. Entries of a product follow one another. Every step draws some products,
 * and Adam changes the parameters against the gradient of
 *   the errors of predicted logarithms, those of slow configurations counting less, and
 *   what a choice by a softmax of the predictions loses.
 * PARAMETERS gets the parameters as floats. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OVERLAPPING = 7, TERMS = 19, INPUTS = 42, HIDDEN = 32, MOST_ENTRIES = 256 };

typedef struct {
  int configurations, networks, steps, batch, products, entries, draws, seed;
  int base_input; /* which input the base becomes, times the scale */
  float base_scale, rate, temperature, decay, body_decay, regret;
} Settings;

/* INPUT: the settings, these arrays, and with which parameters to begin. */
typedef struct {
  int *first;                             /* entry of each product, and behind the last one */
  int *configuration;                     /* [entry] */
  int *draw;                              /* products, from which each step draws */
  float *terms, *inputs;                  /* [entry][TERMS], [entry][INPUTS] */
  float *wanted, *lost, *weight, *usable; /* [entry]; logarithms of microseconds in `wanted` */
  float *parameters;
} Data;

/* Parameters lie in this order; those of each network follow one another. */
typedef struct {
  float *launch, *term, *body;
} Shared;

typedef struct {
  float *first, *first_bias, *second, *second_bias, *last;
} Network;

static Shared shared_of(float *at) {
  Shared shared = {at, at + 1, at + 1 + TERMS};
  return shared;
}

static size_t network_size(const Settings *s) {
  return INPUTS * HIDDEN + (size_t)s->configurations * HIDDEN + HIDDEN * HIDDEN + 2 * HIDDEN;
}

static size_t shared_size(const Settings *s) { return 1 + TERMS + (size_t)s->configurations; }

static size_t parameter_count(const Settings *s) {
  return shared_size(s) + (size_t)s->networks * network_size(s);
}

static Network network_of(const Settings *s, float *at, int network) {
  Network n;
  n.first = at + shared_size(s) + (size_t)network * network_size(s);
  n.first_bias = n.first + INPUTS * HIDDEN;
  n.second = n.first_bias + s->configurations * HIDDEN;
  n.second_bias = n.second + HIDDEN * HIDDEN;
  n.last = n.second_bias + HIDDEN;
  return n;
}

/* gemm_base(), and what it changes by for each of the parameters that are logarithms. */
typedef struct {
  float value, by_launch, by_body, by_term[TERMS];
} Base;

/* `factors`: of the terms. */
static Base base_of(const Shared *p, const float *factors, int configuration, const float *terms) {
  Base base;
  float fourths = 0, sum = expf(p->launch[0]), cubes[OVERLAPPING], scaled[TERMS];
  for (int i = 0; i < TERMS; i++) scaled[i] = terms[i] * factors[i];
  for (int i = 0; i < OVERLAPPING; i++) {
    float term = scaled[i] + 1e-3f;
    cubes[i] = term * term * term;
    fourths += cubes[i] * term;
  }
  for (int i = OVERLAPPING; i < TERMS; i++) sum += scaled[i];
  float body = expf(p->body[configuration]), longest = sqrtf(sqrtf(fourths));
  float all = sum + longest * body;
  base.value = logf(all);
  base.by_launch = expf(p->launch[0]) / all;
  base.by_body = longest * body / all;
  for (int i = 0; i < TERMS; i++) {
    float slope = i < OVERLAPPING ? body * cubes[i] / (longest * longest * longest) : 1;
    base.by_term[i] = slope * scaled[i] / all;
  }
  return base;
}

/* A layer's values as two vectors, which the compiler keeps in registers. */
typedef float Half __attribute__((vector_size(HIDDEN / 2 * sizeof(float)), aligned(4), may_alias));
typedef struct {
  Half low, high;
} Row;

static inline Row row_at(const float *at) {
  Row row = {*(const Half *)at, *(const Half *)(at + HIDDEN / 2)};
  return row;
}

static inline void row_to(float *at, Row row) {
  *(Half *)at = row.low;
  *(Half *)(at + HIDDEN / 2) = row.high;
}

static inline Row row_add(Row to, float factor, Row row) {
  to.low += factor * row.low;
  to.high += factor * row.high;
  return to;
}

static inline float row_dot(Row x, Row y) {
  Half products = x.low * y.low + x.high * y.high;
  float sum = 0;
  for (int i = 0; i < HIDDEN / 2; i++) sum += products[i];
  return sum;
}

/* A network's layers for an entry, kept for the way back. */
typedef struct {
  float inputs[INPUTS], first[HIDDEN], second[HIDDEN];
} Layers;

static float forward(const Network *n, int configuration, Layers *l) {
  float off = 0;
  Row row = row_at(n->first_bias + configuration * HIDDEN);
  for (int i = 0; i < INPUTS; i++) row = row_add(row, l->inputs[i], row_at(n->first + i * HIDDEN));
  row_to(l->first, row);
  for (int j = 0; j < HIDDEN; j++) l->first[j] = fmaxf(l->first[j], 0);
  row = row_at(n->second_bias);
  for (int i = 0; i < HIDDEN; i++) row = row_add(row, l->first[i], row_at(n->second + i * HIDDEN));
  row_to(l->second, row);
  for (int j = 0; j < HIDDEN; j++) {
    l->second[j] = fmaxf(l->second[j], 0);
    off += l->second[j] * n->last[j];
  }
  return off;
}

static void add_at(float *at, float factor, Row row) {
  row_to(at, row_add(row_at(at), factor, row));
}

static void backward(const Network *n, const Network *gradient, int configuration, const Layers *l,
                     float slope) {
  float second[HIDDEN], first[HIDDEN];
  for (int j = 0; j < HIDDEN; j++) {
    gradient->last[j] += slope * l->second[j];
    second[j] = l->second[j] > 0 ? slope * n->last[j] : 0;
    gradient->second_bias[j] += second[j];
  }
  Row of_second = row_at(second);
  for (int i = 0; i < HIDDEN; i++) {
    first[i] = 0;
    if (l->first[i] <= 0) continue;
    first[i] = row_dot(of_second, row_at(n->second + i * HIDDEN));
    add_at(gradient->second + i * HIDDEN, l->first[i], of_second);
  }
  Row of_first = row_at(first);
  add_at(gradient->first_bias + configuration * HIDDEN, 1, of_first);
  for (int i = 0; i < INPUTS; i++) add_at(gradient->first + i * HIDDEN, l->inputs[i], of_first);
}

/* The slopes of the loss by the predictions of one network for a product's entries. */
static void slopes_of(const Settings *s, const Data *d, int from, int count, const float *predicted,
                      float of_error, float of_regret, float *slopes) {
  float shares[MOST_ENTRIES], least = 1e30f, sum = 0, mean = 0;
  for (int i = 0; i < count; i++) {
    if (d->usable[from + i] > 0) least = fminf(least, predicted[i]);
  }
  for (int i = 0; i < count; i++) {
    bool usable = d->usable[from + i] > 0;
    shares[i] = usable ? expf((least - predicted[i]) / s->temperature) : 0;
    sum += shares[i];
  }
  for (int i = 0; i < count; i++) {
    if (sum > 0) shares[i] /= sum;
    mean += shares[i] * d->lost[from + i];
  }
  for (int i = 0; i < count; i++) {
    const float small = 0.1f; /* errors up to this count by their square */
    float error = predicted[i] - d->wanted[from + i];
    float slope = fabsf(error) < small ? error / small : error > 0 ? 1 : -1;
    slopes[i] = of_error * d->weight[from + i] * slope -
                of_regret * shares[i] * (d->lost[from + i] - mean) / s->temperature;
  }
}

/* Adds the gradient of one product's part of the loss. */
static void add_product(const Settings *s, const Data *d, float *parameters, float *gradients,
                        int product, float of_error, float of_regret) {
  static Layers layers[MOST_ENTRIES];
  static Base bases[MOST_ENTRIES];
  float predicted[MOST_ENTRIES], slopes[MOST_ENTRIES], to_base[MOST_ENTRIES] = {0};
  int from = d->first[product], count = d->first[product + 1] - from;
  Shared p = shared_of(parameters), g = shared_of(gradients);
  float factors[TERMS];
  for (int i = 0; i < TERMS; i++) factors[i] = expf(p.term[i]);
  for (int i = 0; i < count; i++) {
    int c = d->configuration[from + i];
    bases[i] = base_of(&p, factors, c, d->terms + (size_t)(from + i) * TERMS);
    memcpy(layers[i].inputs, d->inputs + (size_t)(from + i) * INPUTS, sizeof(layers[i].inputs));
    layers[i].inputs[s->base_input] += bases[i].value * s->base_scale;
  }
  for (int network = 0; network < s->networks; network++) {
    Network n = network_of(s, parameters, network), ng = network_of(s, gradients, network);
    for (int i = 0; i < count; i++) {
      predicted[i] = bases[i].value + forward(&n, d->configuration[from + i], &layers[i]);
    }
    slopes_of(s, d, from, count, predicted, of_error, of_regret, slopes);
    for (int i = 0; i < count; i++) {
      const float least = 1e-7f; /* far less than what counts */
      if (fabsf(slopes[i]) < least) continue;
      to_base[i] += slopes[i];
      backward(&n, &ng, d->configuration[from + i], &layers[i], slopes[i]);
    }
  }
  for (int i = 0; i < count; i++) {
    if (to_base[i] == 0) continue;
    int c = d->configuration[from + i];
    g.launch[0] += to_base[i] * bases[i].by_launch;
    g.body[c] += to_base[i] * bases[i].by_body;
    for (int j = 0; j < TERMS; j++) g.term[j] += to_base[i] * bases[i].by_term[j];
  }
}

static void add_decay(float *gradients, const float *parameters, size_t count, float decay) {
  for (size_t i = 0; i < count; i++) gradients[i] += 2 * decay * parameters[i];
}

static void add_decays(const Settings *s, float *parameters, float *gradients) {
  Shared p = shared_of(parameters), g = shared_of(gradients);
  size_t configurations = (size_t)s->configurations;
  add_decay(g.body, p.body, configurations, s->body_decay);
  for (int network = 0; network < s->networks; network++) {
    Network n = network_of(s, parameters, network), ng = network_of(s, gradients, network);
    add_decay(ng.first, n.first, INPUTS * HIDDEN, s->decay);
    add_decay(ng.first_bias, n.first_bias, configurations * HIDDEN, s->decay);
    add_decay(ng.second, n.second, HIDDEN * HIDDEN, s->decay);
    add_decay(ng.last, n.last, HIDDEN, s->decay);
  }
}

static uint32_t drawn(uint64_t *state, uint32_t below) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(((*state >> 32) * below) >> 32);
}

/* Adam, with a rate that falls to zero. */
typedef struct {
  float *gradients, *first, *second; /* of each parameter */
} Moments;

static void change(const Settings *s, const Moments *m, float *parameters, size_t count, int step) {
  const float keep_first = 0.9f, keep_second = 0.999f, pi = 3.14159265f;
  float rate = s->rate * (1 + cosf(pi * (float)step / (float)s->steps)) / 2;
  float first_sum = 1 - powf(keep_first, (float)step + 1);
  float second_sum = 1 - powf(keep_second, (float)step + 1);
  for (size_t i = 0; i < count; i++) {
    float gradient = m->gradients[i];
    m->first[i] = keep_first * m->first[i] + (1 - keep_first) * gradient;
    m->second[i] = keep_second * m->second[i] + (1 - keep_second) * gradient * gradient;
    parameters[i] -= rate * (m->first[i] / first_sum) / (sqrtf(m->second[i] / second_sum) + 1e-8f);
  }
}

static void train(const Settings *s, const Data *d, const Moments *m, int *batch) {
  size_t count = parameter_count(s);
  uint64_t state = (uint64_t)s->seed;
  for (int step = 0; step < s->steps; step++) {
    float weight = 0;
    memset(m->gradients, 0, count * sizeof(*m->gradients));
    for (int i = 0; i < s->batch; i++) {
      batch[i] = d->draw[drawn(&state, (uint32_t)s->draws)];
      for (int e = d->first[batch[i]]; e < d->first[batch[i] + 1]; e++) weight += d->weight[e];
    }
    for (int i = 0; i < s->batch; i++) {
      add_product(s, d, d->parameters, m->gradients, batch[i], 1 / weight,
                  s->regret / (float)s->batch);
    }
    add_decays(s, d->parameters, m->gradients);
    change(s, m, d->parameters, count, step);
  }
}

static void *allocated(size_t count) {
  void *memory = calloc(count, sizeof(float));
  if (memory == NULL) {
    fprintf(stderr, "train_model: no memory\n");
    exit(EXIT_FAILURE);
  }
  return memory;
}

static void *read_words(FILE *file, size_t count) {
  void *memory = allocated(count);
  if (fread(memory, sizeof(float), count, file) != count) {
    fprintf(stderr, "train_model: the input is too short\n");
    exit(EXIT_FAILURE);
  }
  return memory;
}

int main(int argc, char **argv) {
  FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL;
  if (in == NULL) {
    fprintf(stderr, "usage: train_model INPUT PARAMETERS\n");
    return EXIT_FAILURE;
  }
  const Settings *s = read_words(in, sizeof(Settings) / sizeof(float));
  size_t entries = (size_t)s->entries, count = parameter_count(s);
  Data d;
  d.first = read_words(in, (size_t)s->products + 1);
  d.configuration = read_words(in, entries);
  d.draw = read_words(in, (size_t)s->draws);
  d.terms = read_words(in, entries * TERMS);
  d.inputs = read_words(in, entries * INPUTS);
  d.wanted = read_words(in, entries);
  d.lost = read_words(in, entries);
  d.weight = read_words(in, entries);
  d.usable = read_words(in, entries);
  d.parameters = read_words(in, count);
  fclose(in);
  Moments moments = {allocated(count), allocated(count), allocated(count)};
  train(s, &d, &moments, allocated((size_t)s->batch));
  FILE *out = fopen(argv[2], "wb");
  bool written = out != NULL && fwrite(d.parameters, sizeof(float), count, out) == count;
  return out != NULL && fclose(out) == 0 && written ? EXIT_SUCCESS : EXIT_FAILURE;
}
