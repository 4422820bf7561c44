/* SequenceMap: its body, once for each position of the sequences. */
#include "model/ir/eval.h"

#include "base/error.h"
#include "base/mem.h"
#include "model/ir/items.h"

typedef struct map {
  const hn_graph *body;
  uint32_t n_in, n_out;
  size_t length;
  const hone_tensor **arg;   /* [n_in] of the body's call */
  hone_tensor *made;         /* [n_out] its results */
  const hone_tensor ***list; /* [n_out] what is kept of them */
  hn_arena *keep;
  hn_budget *budget;
} map;

static bool is_sequence(const hone_tensor *t) { return t->desc.dtype & HONE_SEQUENCE; }

/* What is in a sequence lives as long as the run: it counts until then. */
static void *keep(void *self, size_t bytes) {
  const map *m = self;
  hn_budget *b = m->budget;
  if (b && b->max_bytes && (bytes > b->max_bytes || b->bytes > b->max_bytes - bytes)) return NULL;
  void *p = hn_arena_aligned(m->keep, bytes, HN_MEM_ALIGN);
  if (b && p) b->bytes += bytes;
  return p;
}

static hone_status begin(map *m, const hone_tensor *const *in, hone_error *error) {
  m->arg = hn_calloc(m->n_in + 1, sizeof *m->arg);
  m->made = hn_calloc(m->n_out + 1, sizeof *m->made);
  m->list = hn_calloc(m->n_out + 1, sizeof *m->list);
  if (!m->arg || !m->made || !m->list) return hn_fail_memory(error, m->n_out, "SequenceMap");
  for (uint32_t i = 0; i < m->n_in; i++) {
    if (!in[i] || in[i]->desc.dtype & HONE_OPTIONAL || (i == 0 && !is_sequence(in[i])))
      return hn_fail(error, HONE_ERROR_INPUT, "input %u of SequenceMap is no %s", i,
                     i ? "sequence or tensor" : "sequence");
    if (i == 0) m->length = hn_items(in[i])->count;
    if (is_sequence(in[i]) && hn_items(in[i])->count != m->length)
      return hn_fail(error, HONE_ERROR_INPUT, "sequence %u of SequenceMap has %zu tensors, the first has %zu",
                     i, hn_items(in[i])->count, m->length);
    m->arg[i] = in[i];
  }
  for (uint32_t i = 0; i < m->n_out; i++)
    if (!(m->list[i] = keep(m, (m->length + 1) * sizeof **m->list)))
      return hn_fail_memory(error, m->length * sizeof **m->list, "a sequence");
  return HONE_OK;
}

static hone_status one(map *m, const hone_tensor *const *in, size_t at, hn_scope *scope, hone_error *error) {
  for (uint32_t i = 0; i < m->n_in; i++)
    if (is_sequence(in[i])) m->arg[i] = hn_items(in[i])->item[at];
  hone_status status = hn_budget_check(m->budget, error);
  if (status == HONE_OK)
    status = hn_eval_graph(m->body, m->arg, m->made, scope, m->keep, m->budget, NULL, NULL, error);
  if (status != HONE_OK) return status;
  for (uint32_t i = 0; i < m->n_out; i++) {
    if (status == HONE_OK && !hone_dtype_is_tensor(m->made[i].desc.dtype))
      status = hn_fail(error, HONE_ERROR_INPUT, "the body of SequenceMap makes %s",
                       hone_dtype_name(m->made[i].desc.dtype));
    if (status == HONE_OK && !(m->list[i][at] = hn_items_copy(&m->made[i], keep, m)))
      status = hn_fail_memory(error, (unsigned long long)hone_desc_bytes(&m->made[i].desc),
                              "what is in a sequence");
    hn_budget_release(m->budget, &m->made[i]);
  }
  return status;
}

static hone_status give(const map *m, uint32_t i, hone_tensor *out, hone_error *error) {
  const hone_dtype d = m->length ? m->list[i][0]->desc.dtype : m->body->outputs.ptr[i]->desc.dtype;
  out->desc = hone_desc(HONE_SEQUENCE_OF(d), 0, NULL);
  hone_status status = hn_budget_alloc(m->budget, sizeof(hone_items), &out->data, error);
  if (status == HONE_OK) *(hone_items *)out->data = (hone_items){m->length, m->list[i]};
  return status;
}

hone_status hn_eval_map(const hone_node *n, const hone_tensor *const *in, hone_tensor *const *out,
                        hn_scope *scope, hn_arena *keep_in, hn_budget *budget, hone_error *error) {
  const hn_attr *a = hn_node_attr(n, "body");
  map m = {.body = a && a->type == HONE_ATTR_GRAPH ? a->g : NULL,
           .n_in = n->n_in,
           .n_out = n->n_out,
           .keep = keep_in,
           .budget = budget};
  if (!m.body || m.body->inputs.len != n->n_in || m.body->outputs.len != n->n_out)
    return hn_fail(error, HONE_ERROR_INPUT, "the body of SequenceMap does not fit its inputs and outputs");
  hone_status status = begin(&m, in, error);
  for (size_t at = 0; at < m.length && status == HONE_OK; at++) status = one(&m, in, at, scope, error);
  for (uint32_t i = 0; i < n->n_out && status == HONE_OK; i++)
    if (out[i]) status = give(&m, i, out[i], error);
  hn_free((void *)m.arg);
  hn_free(m.made);
  hn_free((void *)m.list);
  return status;
}
