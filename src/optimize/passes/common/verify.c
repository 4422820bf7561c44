#include "optimize/passes/common/verify.h"

#include "base/error.h"
#include "base/rng.h"
#include "model/ops/common/op.h"

struct hn_verifier {
  hn_arena arena; /* input bytes, strings of the outputs */
  uint32_t n_in, n_out;
  const char **names; /* of inputs */
  const hone_tensor **in;
  hone_tensor *out;
  const _Atomic bool *cancel;
  bool halves; /* some value of the original has 16 bits: its rounding is no part of the answer */
};

static bool is_half(hone_dtype d) { return d == HONE_DTYPE_F16 || d == HONE_DTYPE_BF16; }

/* Sizes for dimensions that are not fixed: the first that the model can digest. */
static const int64_t sizes[] = {32, 64, 128, 224};

/* Values in (-1, 1) for floats, 0 and 1 for the rest: indices and masks stay legal. */
static void fill(hone_tensor *t, hn_rng *rng) {
  bool real = hone_dtype_is_float(t->desc.dtype);
  for (int64_t i = 0, n = hn_count(t); i < n; i++)
    if (real)
      hn_set_f64(t, i, hn_rng_unit(rng) * 2 - 1);
    else
      hn_set_i64(t, i, (int64_t)hn_rng_below(rng, 2));
}

/* Runs a graph with inputs found by name: a rewritten model may have fewer (initializers that were inputs).
 */
static hone_status run(hn_verifier *v, hn_model *m, hone_tensor *out, hone_error *error) {
  hn_graph *g = m->graph;
  const hone_tensor **in = hn_calloc(g->inputs.len + 1, sizeof *in);
  if (!in) return hn_fail(error, HONE_ERROR_MEMORY, "cannot allocate memory to verify passes");
  for (size_t i = 0; i < g->inputs.len; i++)
    for (uint32_t k = 0; k < v->n_in; k++)
      if (strcmp(v->names[k], g->inputs.ptr[i]->name) == 0) in[i] = v->in[k];
  hn_budget budget = {.cancel = v->cancel};
  hone_status status = hn_eval_graph(g, in, out, NULL, &v->arena, &budget, NULL, NULL, error);
  hn_free(in);
  return status;
}

static hone_status create(hn_model *m, uint64_t seed, int64_t size, const _Atomic bool *cancel,
                          hn_verifier **out, hone_error *error) {
  *out = NULL;
  hn_verifier *v = hn_calloc(1, sizeof *v);
  if (!v) goto memory;
  hn_graph *g = m->graph;
  v->cancel = cancel;
  for (size_t i = 0; i < g->values.len; i++) v->halves |= is_half(g->values.ptr[i]->desc.dtype);
  v->n_in = (uint32_t)g->inputs.len;
  v->n_out = (uint32_t)g->outputs.len;
  v->names = HN_NEW_ARRAY(&v->arena, const char *, v->n_in + 1);
  v->in = HN_NEW_ARRAY(&v->arena, const hone_tensor *, v->n_in + 1);
  v->out = hn_calloc(v->n_out + 1, sizeof *v->out);
  if (!v->names || !v->in || !v->out) goto memory;
  hn_rng rng = {seed + 1};
  for (uint32_t i = 0; i < v->n_in; i++) {
    const hn_value *x = g->inputs.ptr[i];
    v->names[i] = hn_arena_strdup(&v->arena, x->name);
    if (!v->names[i]) goto memory;
    if (x->constant) continue;
    if (x->desc.rank < 0 || x->foreign || hn_dtype_points(x->desc.dtype)) {
      hone_status status = hn_fail(
          error, HONE_ERROR_UNSUPPORTED,
          "passes cannot be verified: input '%s' has no known rank or is no tensor of numbers", x->name);
      hn_verifier_destroy(v);
      return status;
    }
    hone_tensor *t = HN_NEW(&v->arena, hone_tensor);
    int64_t dim[HONE_MAX_RANK];
    /* The first dimension is mostly a batch; the others are mostly image sides, which strides must divide. */
    for (int32_t k = 0; k < x->desc.rank; k++) dim[k] = x->desc.dim[k] >= 0 ? x->desc.dim[k] : k ? size : 1;
    if (!t) goto memory;
    t->desc = hone_desc(x->desc.dtype, x->desc.rank, dim);
    int64_t bytes = hone_desc_bytes(&t->desc);
    t->data = bytes < 0 ? NULL : hn_arena_aligned(&v->arena, (size_t)bytes, HN_MEM_ALIGN);
    if (!t->data) goto memory;
    fill(t, &rng);
    v->in[i] = t;
  }
  hone_status status = run(v, m, v->out, error);
  if (status != HONE_OK) {
    hn_verifier_destroy(v);
    return status;
  }
  *out = v;
  return HONE_OK;
memory:
  hn_verifier_destroy(v);
  return hn_fail(error, HONE_ERROR_MEMORY, "cannot allocate memory to verify passes");
}

hone_status hn_verifier_create(hn_model *m, uint64_t seed, const _Atomic bool *cancel, hn_verifier **out,
                               hone_error *error) {
  hone_status status = HONE_ERROR_INTERNAL;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && status != HONE_OK; i++) {
    status = create(m, seed, sizes[i], cancel, out, error);
    if (status == HONE_ERROR_MEMORY || status == HONE_ERROR_CANCELLED) break;
  }
  return status;
}

static void free_outputs(hone_tensor *t, uint32_t n) {
  for (uint32_t i = 0; t && i < n; i++) hn_free(t[i].data);
  hn_free(t);
}

void hn_verifier_destroy(hn_verifier *v) {
  if (!v) return;
  free_outputs(v->out, v->n_out);
  hn_arena_free(&v->arena);
  hn_free(v);
}

static hone_status compare(const char *name, const hone_tensor *a, const hone_tensor *b, bool halves,
                           hone_error *error) {
  if (a->desc.dtype != b->desc.dtype || !hone_desc_same_dims(&a->desc, &b->desc)) {
    char x[96], y[96];
    return hn_fail(error, HONE_ERROR_INTERNAL, "output '%s' was %s and is %s now", name,
                   hone_desc_format(&a->desc, x, sizeof x), hone_desc_format(&b->desc, y, sizeof y));
  }
  int64_t n = hn_count(a);
  hone_dtype d = a->desc.dtype;
  if (hn_dtype_points(d)) return HONE_OK; /* no pass computes with strings, sequences or optionals */
  if (!hone_dtype_is_float(d)) {
    for (int64_t i = 0; i < n; i++)
      if (hn_get_i64(a, i) != hn_get_i64(b, i))
        return hn_fail(error, HONE_ERROR_INTERNAL, "output '%s' element %lld was %lld and is %lld now", name,
                       (long long)i, (long long)hn_get_i64(a, i), (long long)hn_get_i64(b, i));
    return HONE_OK;
  }
  double range = 1e-3;
  for (int64_t i = 0; i < n; i++) {
    double x = fabs(hn_get_f64(a, i));
    if (isfinite(x) && x > range) range = x;
  }
  double bound = (halves || is_half(d) ? 2e-2 : 1e-4) * range;
  for (int64_t i = 0; i < n; i++) {
    double x = hn_get_f64(a, i), y = hn_get_f64(b, i);
    bool same = isnan(x) ? isnan(y) : isinf(x) ? x == y : fabs(x - y) <= bound;
    if (!same)
      return hn_fail(error, HONE_ERROR_INTERNAL, "output '%s' element %lld was %.9g and is %.9g now", name,
                     (long long)i, x, y);
  }
  return HONE_OK;
}

hone_status hn_verifier_compare(hn_verifier *v, hn_model *m, hone_error *error) {
  if (m->graph->outputs.len != v->n_out)
    return hn_fail(error, HONE_ERROR_INTERNAL, "the number of outputs changed");
  hone_tensor *out = hn_calloc(v->n_out + 1, sizeof *out);
  if (!out) return hn_fail(error, HONE_ERROR_MEMORY, "cannot allocate memory to verify passes");
  hone_status status = run(v, m, out, error);
  for (uint32_t i = 0; i < v->n_out && status == HONE_OK; i++)
    status = compare(m->graph->outputs.ptr[i]->name, &v->out[i], &out[i], v->halves, error);
  free_outputs(out, v->n_out);
  return status;
}
