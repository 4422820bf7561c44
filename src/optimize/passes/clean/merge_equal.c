/* a = f(x); b = f(x)  ->  b is a          (common subexpressions, and constants with the same content)
 *
 * Nodes are equal when operator, attributes and inputs are. Not for operators whose equal calls may differ,
 * nor for those with bodies. Constants are compared by bytes: +0 and -0 stay apart. */
#include "base/quick_hash.h"
#include "optimize/passes/common/pass.h"

typedef struct slot {
  uint64_t hash;
  void *item;
} slot;

typedef struct table {
  slot *slot;
  size_t mask;
} table;

static bool table_create(hn_pass_context *ctx, table *t, size_t n) {
  size_t size = 16;
  while (size < n * 2) size *= 2;
  t->mask = size - 1;
  t->slot = HN_NEW_ARRAY(ctx->scratch, slot, size);
  return t->slot != NULL;
}

/* The first item with this hash that `same` accepts, else stores this one and returns NULL. */
static void *find_or_add(table *t, uint64_t hash, void *item, bool (*same)(const void *a, const void *b)) {
  size_t i = hash & t->mask;
  for (; t->slot[i].item; i = (i + 1) & t->mask)
    if (t->slot[i].hash == hash && same(t->slot[i].item, item)) return t->slot[i].item;
  t->slot[i] = (slot){hash, item};
  return NULL;
}

/* ------------------------------------------------------------------ constants */

static bool same_desc(const hone_tensor_desc *a, const hone_tensor_desc *b) {
  return a->dtype == b->dtype && a->rank == b->rank && hone_desc_same_dims(a, b);
}

static bool same_bytes(const hone_tensor *a, const hone_tensor *b) {
  if (!same_desc(&a->desc, &b->desc)) return false;
  return a->data == b->data || memcmp(a->data, b->data, (size_t)hone_desc_bytes(&a->desc)) == 0;
}

static bool same_constant(const void *a, const void *b) {
  return same_bytes(((const hn_value *)a)->constant, ((const hn_value *)b)->constant);
}

/* A hash of the beginning: the comparison decides. */
static uint64_t constant_hash(const hone_tensor *t) {
  size_t bytes = (size_t)hone_desc_bytes(&t->desc);
  uint64_t h = hn_quick_hash(t->data, bytes < 256 ? bytes : 256, (uint64_t)t->desc.dtype);
  return hn_quick_hash(t->desc.dim, sizeof *t->desc.dim * (size_t)t->desc.rank, h ^ bytes);
}

static bool merge_constants(hn_pass_context *ctx) {
  hn_graph *g = ctx->graph;
  table t;
  if (!table_create(ctx, &t, g->values.len)) return false;
  uint32_t merged = 0;
  for (size_t i = 0; i < g->values.len; i++) {
    hn_value *v = g->values.ptr[i];
    if (v->deferred || !hn_known(v) || v->is_output || v->users.len == 0 ||
        v->constant->desc.dtype == HONE_DTYPE_STRING)
      continue;
    hn_value *first = find_or_add(&t, constant_hash(v->constant), v, same_constant);
    if (!first) continue;
    if (!hn_value_replace(v, first)) return false;
    merged++;
  }
  if (merged) hn_pass_record_add(ctx, true, NULL, 0, "%u constants had the content of others", merged);
  return true;
}

/* ------------------------------------------------------------------ nodes */

static bool same_attr(const hn_attr *a, const hn_attr *b) {
  if (a->type != b->type) return false;
  switch (a->type) {
  case HONE_ATTR_TYPE:
  case HONE_ATTR_INT: return a->i == b->i;
  case HONE_ATTR_FLOAT: return memcmp(&a->f, &b->f, sizeof a->f) == 0;
  case HONE_ATTR_STRING: return a->s.len == b->s.len && memcmp(a->s.ptr, b->s.ptr, a->s.len) == 0;
  case HONE_ATTR_INTS:
  case HONE_ATTR_FLOATS:
    return a->list.n == b->list.n &&
           memcmp(a->list.ptr, b->list.ptr,
                  a->list.n * (a->type == HONE_ATTR_INTS ? sizeof(int64_t) : sizeof(float))) == 0;
  case HONE_ATTR_TENSOR: return a->t->desc.dtype != HONE_DTYPE_STRING && same_bytes(a->t, b->t);
  default: return false;
  }
}

static bool same_node(const void *pa, const void *pb) {
  const hone_node *a = pa, *b = pb;
  if (strcmp(a->op_type, b->op_type) != 0 || strcmp(a->domain, b->domain) != 0 || a->n_in != b->n_in ||
      a->n_out != b->n_out || a->n_attr != b->n_attr)
    return false;
  for (uint32_t i = 0; i < a->n_in; i++)
    if (a->in[i] != b->in[i]) return false;
  for (uint32_t i = 0; i < a->n_attr; i++) {
    const hn_attr *other = hn_node_attr(b, a->attr[i].name);
    if (!other || !same_attr(&a->attr[i], other)) return false;
  }
  /* What the first does not make cannot be taken from it. */
  for (uint32_t i = 0; i < a->n_out; i++)
    if ((b->out[i] && !a->out[i]) || (b->out[i] && !hn_can_replace(b->out[i], a->out[i]))) return false;
  return true;
}

static uint64_t node_hash(const hone_node *n) {
  uint64_t h = hn_quick_hash(n->op_type, strlen(n->op_type), n->n_in * 31u + n->n_out);
  for (uint32_t i = 0; i < n->n_in; i++) {
    uint32_t id = n->in[i] ? n->in[i]->id : UINT32_MAX;
    h = hn_quick_hash(&id, sizeof id, h);
  }
  return h;
}

static hn_pass_result run(hn_pass_context *ctx) {
  hn_graph *g = ctx->graph;
  table t;
  if (!merge_constants(ctx) || !table_create(ctx, &t, g->n_nodes)) return hn_pass_memory(ctx);
  for (hone_node *n = g->first, *next; n; n = next) {
    next = n->next;
    if (!n->op || n->op->flags & HONE_OP_CONTROL || hn_draws(n)) continue;
    hone_node *first = find_or_add(&t, node_hash(n), n, same_node);
    if (!first) continue;
    hn_pass_record_add(ctx, true, (hone_node *const[]){first, n}, 2, "'%.80s' computes what '%.80s' does",
                       n->name, first->name);
    for (uint32_t i = 0; i < n->n_out; i++)
      if (n->out[i] && !hn_replace(ctx, n->out[i], first->out[i])) return HN_PASS_FAIL;
    if (!hn_inherit(ctx, first, n)) return HN_PASS_FAIL;
    hn_node_remove(n);
  }
  return HN_PASS_NONE;
}

HN_PASS(merge_equal) = {
    .name = "merge_equal", .level = 1, .about = "two equal computations -> one", .run = run};
