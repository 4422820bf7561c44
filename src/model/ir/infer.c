/* Shape and dtype inference over whole models. */
#include "model/ir/bytes.h"
#include "model/ir/items.h"
#include "model/ir/eval.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* Values that inference needs beforehand (shape arithmetic) are computed on the side; larger ones are not
 * worth it. Of floats those are that sizes are computed in, Resize's scales and corners at the most: what is
 * longer are weights, such as the biases that a file in 8 bits makes by DequantizeLinear. */
enum { SIDE_ELEMENTS = 1024, SIDE_BYTES = 8 << 20 }; /* a value; all of them */
enum { SIDE_FLOATS = 2 * HONE_MAX_RANK };

typedef struct inference {
  hn_arena arena;
  const hone_tensor **value; /* by value id: known beforehand */
  hn_budget budget;
  uint32_t unfit; /* branches that may be taken, and cannot work */
} inference;

static hone_status infer_graph(hn_graph *g, inference *inf, hone_error *error);

static const hone_tensor *known(const inference *inf, const hn_value *v) {
  return v->constant && !v->is_input ? v->constant : inf->value[v->id];
}

/* The value of a small node whose inputs are all known, or of Shape and Size, which need only descriptors. */
static void fold_aside(hone_node *n, inference *inf) {
  if (n->op->flags & HONE_OP_CONTROL || hn_draws(n)) return;
  const bool by_desc = n->op->flags & HONE_OP_SHAPE_ONLY;
  if (n->n_out != 1 || !n->out[0] || n->n_in > 16) return;
  const hone_tensor_desc *od = &n->out[0]->desc;
  int64_t count = hone_desc_count(od);
  if (count < 0 || count > SIDE_ELEMENTS || hn_dtype_points(od->dtype)) return;
  hone_tensor by_shape;
  const hone_tensor *in[16];
  for (uint32_t i = 0; i < n->n_in; i++) {
    in[i] = n->in[i] ? known(inf, n->in[i]) : NULL;
    if (n->in[i] && !in[i]) {
      if (!by_desc || !hone_desc_known(&n->in[i]->desc)) return;
      by_shape = (hone_tensor){n->in[i]->desc, NULL};
      in[i] = &by_shape;
    }
    /* Big operands (a weight that is gathered from) are left to constant folding, which has a budget. */
    if (in[i] && !by_desc && hone_desc_count(&in[i]->desc) > SIDE_ELEMENTS) return;
  }
  const hone_tensor *shown = hn_constant_shown(n);
  if (shown && hn_is_aligned(shown)) {
    inf->value[n->out[0]->id] = shown;
    return;
  }
  if (hone_dtype_is_float(od->dtype) && count > SIDE_FLOATS) return;
  hone_tensor result = {0};
  hone_tensor *out = &result;
  if (hn_eval_node(n, in, &out, &inf->arena, &inf->budget, NULL) != HONE_OK) return;
  int64_t bytes = hone_desc_bytes(&result.desc);
  hone_tensor *t = HN_NEW(&inf->arena, hone_tensor);
  if (t && bytes >= 0) {
    t->desc = result.desc;
    t->data = hn_arena_memdup(&inf->arena, result.data, (size_t)bytes);
    if (t->data) inf->value[n->out[0]->id] = t;
  }
  hn_free(result.data);
}

/* Scan of opset 8 has lengths as its first input, and a batch in front of everything. */
static bool scan_is_batched(const hone_node *n) { return n->opset < 9 && hn_is_op(n, "Scan"); }

static void drop_dim(hone_tensor_desc *d, int64_t axis) {
  if (axis < 0) axis += d->rank;
  if (axis < 0 || axis >= d->rank) return;
  for (int32_t k = (int32_t)axis + 1; k < d->rank; k++) d->dim[k - 1] = d->dim[k];
  d->rank--;
}

/* Bodies see the types of what is handed to them; shapes that may change from trip to trip stay as declared.
 */
static hone_status infer_bodies(hone_node *n, inference *inf, hone_error *error) {
  bool loop = hn_is_op(n, "Loop"), scan = hn_is_op(n, "Scan"), map = hn_is_op(n, "SequenceMap");
  for (uint32_t k = 0; k < n->n_attr; k++) {
    if (n->attr[k].type != HONE_ATTR_GRAPH) continue;
    hn_graph *body = n->attr[k].g;
    uint32_t scans = scan ? (uint32_t)hone_node_int(n, "num_scan_inputs", 0) : 0;
    uint32_t lead = scan_is_batched(n) ? 1 : 0;
    for (uint32_t i = 0; i < body->inputs.len; i++) {
      hn_value *v = body->inputs.ptr[i];
      if (loop && i < 2) {
        v->desc = hone_desc(i == 0 ? HONE_DTYPE_I64 : HONE_DTYPE_BOOL, 0, NULL);
      } else if (map && i < n->n_in && n->in[i]) { /* any shape may be in a sequence */
        const hone_dtype given = hone_dtype_element(n->in[i]->desc.dtype);
        if (given != HONE_DTYPE_NONE) v->desc.dtype = given;
      } else if ((loop || scan) && i + lead < n->n_in && n->in[i + lead]) {
        hone_tensor_desc given = n->in[i + lead]->desc;
        v->foreign = n->in[i + lead]->foreign;
        if (!hone_dtype_is_tensor(given.dtype)) v->desc = given;
        if (given.dtype != HONE_DTYPE_NONE) v->desc.dtype = given.dtype;
        if (!scan || given.rank < 0) continue;
        if (lead) drop_dim(&given, 0);
        if (scans <= n->n_in && i + lead >= n->n_in - scans) {
          size_t na;
          uint32_t k = i + lead - (n->n_in - scans);
          const int64_t *axes = hone_node_ints(n, "scan_input_axes", &na);
          drop_dim(&given, axes && k < na ? axes[k] : 0);
        }
        v->desc.rank = given.rank;
        memcpy(v->desc.dim, given.dim, sizeof given.dim);
      }
    }
    hone_status status = infer_graph(body, inf, error);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}

/* Errors that say that a branch cannot work with these shapes, and nothing about hone or the machine. */
static bool contradicts(hone_status status) {
  return status == HONE_ERROR_INPUT || status == HONE_ERROR_UNSUPPORTED;
}

/* A branch that is never taken need not infer. Of two that may be taken one has to; the other is marked, and
 * is the error of the run that takes it. */
static hone_status infer_branches(hone_node *n, inference *inf, hone_error *error) {
  static const char *const names[] = {"else_branch", "then_branch"};
  const hone_tensor *cond = n->n_in && n->in[0] ? known(inf, n->in[0]) : NULL;
  const bool sure = cond && hone_desc_count(&cond->desc) == 1 && cond->desc.dtype == HONE_DTYPE_BOOL;
  const int taken = sure ? *(const uint8_t *)cond->data != 0 : -1;
  hone_error why[2] = {{0}, {0}};
  hone_status failed[2] = {HONE_OK, HONE_OK};
  for (int k = 0; k < 2; k++) {
    const hn_attr *a = hn_node_attr(n, names[k]);
    if (!a || a->type != HONE_ATTR_GRAPH) continue;
    failed[k] = infer_graph(a->g, inf, &why[k]);
    a->g->unfit = failed[k] != HONE_OK;
    if (failed[k] == HONE_OK || contradicts(failed[k])) continue;
    if (error) *error = why[k];
    return failed[k];
  }
  if (taken < 0) inf->unfit += (failed[0] != HONE_OK) + (failed[1] != HONE_OK);
  if (taken >= 0 ? !failed[taken] : !failed[0] || !failed[1]) return HONE_OK;
  const int said = taken >= 0 ? taken : 1;
  if (error) *error = why[said];
  return failed[said];
}

/* An operator of another domain may be anybody's: its reason alone does not show what it was given. */
static void say_inputs(const hone_node *n, hone_error *error) {
  char all[180] = "", one[100];
  for (uint32_t i = 0; i < n->n_in; i++) {
    const size_t at = strlen(all);
    snprintf(all + at, sizeof all - at, "%s%s", i ? ", " : "",
             n->in[i] ? hone_desc_format(&n->in[i]->desc, one, sizeof one) : "none");
  }
  hn_error_hint(error, "its inputs are %s; feed or export others, or change what %.60s.%.60s takes", all,
                n->domain, n->op_type);
}

static hone_status infer_node(hone_node *n, inference *inf, hone_error *error) {
  enum { FEW = 8, FEW_OUT = 2 }; /* every node is asked again after every pass: few allocate */
  hone_status status = HONE_OK;
  hn_arena temp = {0};
  if (!n->op)
    return hn_fail(error, HONE_ERROR_INTERNAL, "node '%s' (%s) was not resolved", n->name, n->op_type);
  const hone_tensor_desc *few_in[FEW] = {NULL}, **in = few_in;
  const hone_tensor *few_values[FEW] = {NULL}, **value = few_values;
  hone_tensor_desc *few_out[FEW_OUT] = {NULL}, **out = few_out, few_old[FEW_OUT] = {{0}}, *old = few_old;
  if (n->n_in > FEW) {
    in = HN_NEW_ARRAY(&temp, const hone_tensor_desc *, n->n_in);
    value = HN_NEW_ARRAY(&temp, const hone_tensor *, n->n_in);
  }
  if (n->n_out > FEW_OUT) {
    out = HN_NEW_ARRAY(&temp, hone_tensor_desc *, n->n_out);
    old = HN_NEW_ARRAY(&temp, hone_tensor_desc, n->n_out);
  }
  if (!in || !value || !out || !old) {
    status = hn_fail_memory(error, n->n_in + n->n_out, "shape inference");
    goto done;
  }
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!n->in[i]) continue;
    if (n->in[i]->foreign || (hn_dtype_has_map(n->in[i]->desc.dtype) && strcmp(n->domain, "ai.onnx.ml"))) {
      status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s on maps is not implemented", n->op_type);
      goto done;
    }
    if ((status = hn_op_takes(n, &n->in[i]->desc, i, error)) != HONE_OK) goto done;
    in[i] = &n->in[i]->desc;
    value[i] = known(inf, n->in[i]);
  }
  for (uint32_t i = 0; i < n->n_out; i++) {
    if (!n->out[i]) continue;
    old[i] = n->out[i]->desc;
    n->out[i]->desc = (hone_tensor_desc){.rank = -1};
    out[i] = &n->out[i]->desc;
  }
  status = hn_is_op(n, "If") ? infer_branches(n, inf, error) : infer_bodies(n, inf, error);
  if (status != HONE_OK) goto done;
  hone_infer io = {n, n->n_in, n->n_out, in, value, out};
  status = n->op->infer ? n->op->infer(&io, error) : HONE_OK;
  if (status != HONE_OK) goto done;
  for (uint32_t i = 0; i < n->n_out; i++) {
    if (!out[i]) continue;
    if (out[i]->dtype == HONE_DTYPE_NONE) out[i]->dtype = old[i].dtype;
    if (old[i].dtype != HONE_DTYPE_NONE && out[i]->dtype != old[i].dtype) {
      status =
          hn_fail(error, HONE_ERROR_INPUT, "output '%.100s' is declared as %s but %s makes %s",
                  n->out[i]->name, hone_dtype_name(old[i].dtype), n->op_type, hone_dtype_name(out[i]->dtype));
      goto done;
    }
    for (int32_t k = 0; k < out[i]->rank; k++)
      if (out[i]->dim[k] >= 0 && out[i]->rank > HONE_MAX_RANK) status = HONE_ERROR_INTERNAL;
    if (hone_desc_known(out[i])) {
      if (hone_desc_bytes(out[i]) < 0) {
        char text[128];
        status = hn_fail(error, HONE_ERROR_INPUT, "output '%.100s' would be too large: %s", n->out[i]->name,
                         hone_desc_format(out[i], text, sizeof text));
        goto done;
      }
      hone_desc_set_layout(out[i], HONE_LAYOUT_ROW_MAJOR, 0);
    }
  }
  fold_aside(n, inf);
done:
  for (uint32_t i = 0; status != HONE_OK && old && i < n->n_out; i++) /* what was known stays */
    if (out && out[i]) *out[i] = old[i];
  if (status != HONE_OK && error && !error->where[0]) {
    if (*n->domain && !error->hint[0] && status == HONE_ERROR_INPUT) say_inputs(n, error);
    hn_error_where(error, "node '%s' (%s%s%s)", n->name, n->domain, *n->domain ? "." : "", n->op_type);
  }
  hn_arena_free(&temp);
  return status;
}

static hone_status infer_graph(hn_graph *g, inference *inf, hone_error *error) {
  for (hone_node *n = g->first; n; n = n->next) {
    hone_status status = infer_node(n, inf, error);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}

hone_status hn_model_infer(hn_model *m, hone_error *error) {
  inference inf = {.arena = {.limit = SIDE_BYTES},
                   .budget = {.deadline_ns = hn_now_ns() + 20000000000u, .max_bytes = 256u << 20}};
  inf.value = hn_calloc(m->next_value_id, sizeof *inf.value);
  if (!inf.value) return hn_fail_memory(error, m->next_value_id * sizeof *inf.value, "shape inference");
  hone_status status = infer_graph(m->graph, &inf, error);
  m->unfit_branches = inf.unfit;
  hn_free((void *)inf.value);
  hn_arena_free(&inf.arena);
  return status;
}
