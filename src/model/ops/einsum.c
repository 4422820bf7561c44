/* Einsum: sums of products of elements whose indices carry the same letters. Letters are followed as
 * dimensions: an operand has a step for each of them, and the result is a walk over the result's letters with
 * a sum over the others. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

#include <ctype.h>

enum { LETTERS = 52, DOTS = HONE_MAX_RANK, LABELS = LETTERS + DOTS, MAX_OPERANDS = 16, MAX_LOOPS = 16 };

/* Labels of one term: letters are 0..51, the ellipsis' dimensions 52.. counted from the last one backwards.
 */
typedef struct term {
  int32_t n;
  uint8_t label[HONE_MAX_RANK + 1];
} term;

typedef struct equation {
  uint32_t n_in;
  term in[MAX_OPERANDS], out;
  int64_t dim[LABELS]; /* -1: unknown, -2: not used */
} equation;

static const char *skip(const char *p) {
  while (*p == ' ') p++;
  return p;
}

/* Reads letters up to a comma, an arrow or the end. rank < 0: the result's term, whose ellipsis has `dots`
 * dimensions. */
static hone_status read_term(const hone_node *node, const char **at, int32_t rank, int32_t *dots, term *t,
                             hone_error *error) {
  const char *p = skip(*at);
  int32_t letters = 0;
  bool ellipsis = false;
  for (const char *q = p; *q && *q != ',' && *q != '-'; q = skip(q + 1))
    letters += isalpha((unsigned char)*q) != 0;
  int32_t own = rank < 0 ? *dots : rank - letters; /* dimensions that an ellipsis here stands for */
  t->n = 0;
  while (*p && *p != ',' && *p != '-') {
    if (strncmp(p, "...", 3) == 0) {
      if (ellipsis || own < 0) return hn_op_bad(node, error, "the equation's ellipsis has no place");
      if (t->n + own > HONE_MAX_RANK) return hn_op_refuse(node, error, "a term of rank %d", t->n + own);
      ellipsis = true;
      for (int32_t i = own - 1; i >= 0; i--) t->label[t->n++] = (uint8_t)(LETTERS + i);
      p = skip(p + 3);
      continue;
    }
    if (!isalpha((unsigned char)*p)) return hn_op_bad(node, error, "'%c' in the equation", *p);
    if (t->n >= HONE_MAX_RANK)
      return hn_op_refuse(node, error, "a term of more than %d letters", HONE_MAX_RANK);
    t->label[t->n++] = (uint8_t)(islower((unsigned char)*p) ? *p - 'a' : *p - 'A' + 26);
    p = skip(p + 1);
  }
  if (rank >= 0 && t->n != rank)
    return hn_op_bad(node, error, "a term has %d letters for rank %d", t->n, rank);
  if (rank >= 0 && ellipsis && own > *dots) *dots = own;
  *at = p;
  return HONE_OK;
}

/* Without an arrow: the ellipsis' dimensions, then the letters that appear once, in alphabetical order
 * (capitals first). */
static hone_status implicit(const hone_node *node, equation *e, int32_t dots, hone_error *error) {
  int32_t seen[LETTERS] = {0};
  for (uint32_t i = 0; i < e->n_in; i++)
    for (int32_t k = 0; k < e->in[i].n; k++)
      if (e->in[i].label[k] < LETTERS) seen[e->in[i].label[k]]++;
  e->out.n = 0;
  for (int32_t i = dots - 1; i >= 0; i--) e->out.label[e->out.n++] = (uint8_t)(LETTERS + i);
  for (int32_t k = 0; k < LETTERS; k++) {
    int32_t letter = k < 26 ? k + 26 : k - 26;
    if (seen[letter] != 1) continue;
    if (e->out.n >= HONE_MAX_RANK)
      return hn_op_refuse(node, error, "a result of more than %d dimensions", HONE_MAX_RANK);
    e->out.label[e->out.n++] = (uint8_t)letter;
  }
  return HONE_OK;
}

static hone_status parse(const hone_node *node, const hone_tensor_desc *const *in, uint32_t n, equation *e,
                         hone_error *error) {
  const char *p = hone_node_string(node, "equation", "");
  int32_t dots = 0;
  if (n > MAX_OPERANDS) return hn_op_refuse(node, error, "%u operands", n);
  e->n_in = n;
  for (int32_t i = 0; i < LABELS; i++) e->dim[i] = -2;
  for (uint32_t i = 0; i < n; i++) {
    hone_status status = read_term(node, &p, in[i]->rank, &dots, &e->in[i], error);
    if (status) return status;
    for (int32_t k = 0; k < e->in[i].n; k++) {
      int64_t *have = &e->dim[e->in[i].label[k]], d = in[i]->dim[k];
      bool dot = e->in[i].label[k] >= LETTERS;
      if (*have == -2 || (*have == -1 && d > 1))
        *have = d < 0 ? -1 : d;
      else if (dot && *have == 1)
        *have = d < 0 ? -1 : d;
      else if (d >= 0 && *have >= 0 && d != *have && !(dot && d == 1)) {
        if (d != 1 && *have != 1)
          return hn_op_bad(node, error, "one letter has sizes %lld and %lld", (long long)*have, (long long)d);
        if (d > *have)
          *have = d; /* letters of size 1 broadcast, as numpy lets them */
        else if (d == 0)
          *have = 0;
      }
    }
    if (i + 1 < n && *p != ',') return hn_op_bad(node, error, "the equation has fewer terms than inputs");
    if (i + 1 < n) p++;
  }
  if (*p == ',') return hn_op_bad(node, error, "the equation has more terms than inputs");
  if (!*p) return implicit(node, e, dots, error);
  if (p[1] != '>') return hn_op_bad(node, error, "the equation has '-' without '>'");
  p += 2;
  hone_status status = read_term(node, &p, -1, &dots, &e->out, error);
  if (!status && *p) status = hn_op_bad(node, error, "the equation goes on after its result");
  for (int32_t k = 0; k < e->out.n && !status; k++) {
    if (e->dim[e->out.label[k]] == -2)
      status = hn_op_bad(node, error, "the result has a letter that no input has");
    for (int32_t j = 0; j < k; j++)
      if (e->out.label[j] == e->out.label[k])
        status = hn_op_bad(node, error, "the result has a letter twice");
  }
  return status;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  equation e;
  hone_dtype dtype = HONE_DTYPE_NONE;
  bool known = true;
  for (uint32_t i = 0; i < io->n_inputs; i++) {
    if (!io->input[i]) return hn_op_bad(io->node, error, "input %u is missing", i);
    if (io->input[i]->dtype && dtype && io->input[i]->dtype != dtype)
      return hn_op_bad(io->node, error, "inputs differ in dtype");
    if (io->input[i]->dtype) dtype = io->input[i]->dtype;
    known &= io->input[i]->rank >= 0;
  }
  hone_tensor_desc y = {.rank = -1};
  if (known) {
    hone_status status = parse(io->node, io->input, io->n_inputs, &e, error);
    if (status) return status;
    y.rank = e.out.n;
    for (int32_t k = 0; k < e.out.n; k++) y.dim[k] = e.dim[e.out.label[k]];
  }
  hn_infer_set(io, 0, dtype, y.rank, y.dim);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *c) {
  equation e;
  hn_cost_macs(c, 0);
  for (uint32_t i = 0; i < io->n_inputs; i++)
    if (!io->input[i] || !hone_desc_known(io->input[i])) return;
  if (parse(io->node, io->input, io->n_inputs, &e, NULL)) return;
  double n = 1;
  for (int32_t i = 0; i < LABELS; i++)
    if (e.dim[i] >= 0) n *= (double)e.dim[i];
  if (io->n_inputs > 1)
    hn_cost_macs(c, n * (io->n_inputs - 1));
  else
    hn_cost_flops(c, n);
}

/* One nest of loops: the result's labels outside, the summed ones inside. */
typedef struct nest {
  int32_t rank, summed; /* loops in all, and how many of them are sums (the last ones) */
  uint32_t n;           /* operands */
  int64_t dim[MAX_LOOPS], step[MAX_OPERANDS][MAX_LOOPS];
} nest;

static hone_status nest_make(const hone_call *call, const equation *e, nest *t, hone_error *error) {
  int32_t place[LABELS];
  *t = (nest){.n = e->n_in};
  for (int32_t i = 0; i < LABELS; i++) place[i] = -1;
  for (int32_t k = 0; k < e->out.n; k++) {
    place[e->out.label[k]] = t->rank;
    t->dim[t->rank++] = e->dim[e->out.label[k]];
  }
  for (int32_t i = 0; i < LABELS; i++) {
    if (e->dim[i] == -2 || place[i] >= 0) continue;
    if (t->rank == MAX_LOOPS) return hn_op_refuse(call->node, error, "more than %d letters", MAX_LOOPS);
    place[i] = t->rank;
    t->dim[t->rank++] = e->dim[i];
    t->summed++;
  }
  for (uint32_t i = 0; i < t->n; i++) {
    int64_t step = 1;
    for (int32_t k = e->in[i].n - 1; k >= 0; k--) { /* a letter that is there twice walks the diagonal */
      int64_t d = call->input[i]->desc.dim[k];
      if (d != 1) t->step[i][place[e->in[i].label[k]]] += step;
      step *= d;
    }
  }
  return HONE_OK;
}

/* Sum over the summed loops from the operands' offsets `at`. The innermost loop is a plain dot product where
 * it can be. */
static double sum_f64(const nest *t, const double *const *x, const int64_t *start) {
  int64_t index[MAX_LOOPS] = {0}, at[MAX_OPERANDS];
  int32_t first = t->rank - t->summed, last = t->rank - 1;
  int64_t inner = t->summed ? t->dim[last] : 1;
  double sum = 0;
  memcpy(at, start, t->n * sizeof *at);
  for (;;) {
    if (t->n == 2 && t->summed) {
      const double *a = x[0] + at[0], *b = x[1] + at[1];
      const int64_t sa = t->step[0][last], sb = t->step[1][last];
      for (int64_t i = 0; i < inner; i++) sum += a[i * sa] * b[i * sb];
    } else {
      for (int64_t i = 0; i < inner; i++) {
        double p = 1;
        for (uint32_t k = 0; k < t->n; k++) p *= x[k][at[k] + i * (t->summed ? t->step[k][last] : 0)];
        sum += p;
      }
    }
    int32_t d = last - 1;
    for (; d >= first; d--) {
      for (uint32_t k = 0; k < t->n; k++) at[k] += t->step[k][d];
      if (++index[d] < t->dim[d]) break;
      for (uint32_t k = 0; k < t->n; k++) at[k] -= t->step[k][d] * t->dim[d];
      index[d] = 0;
    }
    if (d < first) return sum;
  }
}

static int64_t sum_i64(const nest *t, const int64_t *const *x, const int64_t *start) {
  int64_t index[MAX_LOOPS] = {0}, at[MAX_OPERANDS];
  int32_t first = t->rank - t->summed;
  uint64_t sum = 0;
  memcpy(at, start, t->n * sizeof *at);
  for (;;) {
    uint64_t p = 1;
    for (uint32_t k = 0; k < t->n; k++) p *= (uint64_t)x[k][at[k]];
    sum += p;
    int32_t d = t->rank - 1;
    for (; d >= first; d--) {
      for (uint32_t k = 0; k < t->n; k++) at[k] += t->step[k][d];
      if (++index[d] < t->dim[d]) break;
      for (uint32_t k = 0; k < t->n; k++) at[k] -= t->step[k][d] * t->dim[d];
      index[d] = 0;
    }
    if (d < first) return (int64_t)sum;
  }
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor_desc *desc[MAX_OPERANDS];
  const void *x[MAX_OPERANDS];
  hone_tensor *y = call->output[0];
  equation e;
  nest t;
  if (call->n_inputs > MAX_OPERANDS) return hn_op_refuse(call->node, error, "%u operands", call->n_inputs);
  for (uint32_t i = 0; i < call->n_inputs; i++) desc[i] = &call->input[i]->desc;
  hone_status status = parse(call->node, desc, call->n_inputs, &e, error);
  if (!status) status = nest_make(call, &e, &t, error);
  if (status) return status;
  bool real = hone_dtype_is_float(y->desc.dtype), empty = false;
  for (uint32_t i = 0; i < t.n; i++) {
    int64_t n = hn_count(call->input[i]);
    if (real)
      x[i] = hn_all_f64(call, call->input[i], error);
    else {
      int64_t *wide = hn_scratch(call, n, sizeof *wide, error);
      if (wide) hn_read_i64(wide, call->input[i]->data, desc[i]->dtype, 0, n);
      x[i] = wide;
    }
    if (!x[i]) return HONE_ERROR_MEMORY;
    empty |= n == 0;
  }
  int64_t index[MAX_LOOPS] = {0}, at[MAX_OPERANDS] = {0}, left = 0, work = 1;
  for (int32_t d = t.rank - t.summed; d < t.rank; d++)
    work = work > HN_STOP_EVERY ? work : work * (t.dim[d] + 1);
  for (int64_t i = 0, count = hn_count(y); i < count; i++) {
    if ((left -= work) < 0) {
      left = HN_STOP_EVERY;
      status = hn_call_check(call, error);
      if (status) return status;
    }
    if (empty)
      hn_set_i64(y, i, 0);
    else if (real)
      hn_set_f64(y, i, sum_f64(&t, (const double *const *)x, at));
    else
      hn_set_i64(y, i, sum_i64(&t, (const int64_t *const *)x, at));
    for (int32_t d = t.rank - t.summed - 1; d >= 0; d--) {
      for (uint32_t k = 0; k < t.n; k++) at[k] += t.step[k][d];
      if (++index[d] < t.dim[d]) break;
      for (uint32_t k = 0; k < t.n; k++) at[k] -= t.step[k][d] * t.dim[d];
      index[d] = 0;
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "equation", .type = HONE_ATTR_STRING, .required = true}, {0}};

HN_OP(einsum) = {HN_OP_HEAD,
                 .op_type = "Einsum",
                 .since = 12,
                 .min_inputs = 1,
                 .max_inputs = HONE_VARIADIC,
                 .min_outputs = 1,
                 .max_outputs = 1,
                 .types = HN_TYPES_NUMBER,
                 .attrs = attrs,
                 .infer = infer,
                 .cost = cost,
                 .reference = reference};
