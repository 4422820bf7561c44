/* StringSplit: every string's parts between delimiters along a new last dimension, filled up with empty
 * strings, and their numbers. Without a delimiter runs of ASCII white space divide, and none stands before
 * the first part. The last of maxsplit + 1 parts is all that is left. */
#include "model/ops/common/bulk.h"
#include "model/ir/graph.h"
#include "model/ops/common/convert.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int64_t dim[HONE_MAX_RANK];
  if (x->rank >= HONE_MAX_RANK)
    return hn_op_refuse(io->node, error, "the input has rank %d, the output would have one more",
                        (int)x->rank);
  for (int32_t i = 0; i < x->rank; i++) dim[i] = x->dim[i];
  if (x->rank >= 0) dim[x->rank] = HONE_DIM_UNKNOWN;
  hn_infer_set(io, 0, HONE_DTYPE_STRING, x->rank < 0 ? -1 : x->rank + 1, dim);
  hn_infer_set(io, 1, HONE_DTYPE_I64, x->rank, x->dim);
  return HONE_OK;
}

typedef struct splitter {
  const char *delimiter; /* "": white space */
  size_t length;
  int64_t most; /* splits; < 0: any number */
} splitter;

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Where the delimiter next stands in s from `from` on; s.len: nowhere. */
static size_t find(const splitter *p, hone_string s, size_t from) {
  if (!p->length) {
    while (from < s.len && !is_space(s.ptr[from])) from++;
    return from;
  }
  for (; from + p->length <= s.len; from++)
    if (memcmp(s.ptr + from, p->delimiter, p->length) == 0) return from;
  return s.len;
}

/* The number of parts of s; out: room for them, or NULL. */
static int64_t split(const splitter *p, hone_string s, hone_string *out) {
  int64_t n = 0;
  for (size_t at = 0;;) {
    while (!p->length && at < s.len && is_space(s.ptr[at])) at++;
    if (!p->length && at == s.len) return n;
    const size_t end = p->most >= 0 && n == p->most ? s.len : find(p, s, at);
    if (out) out[n] = (hone_string){s.ptr ? s.ptr + at : "", end - at};
    n++;
    if (end == s.len) return n;
    at = end + (p->length ? p->length : 1);
  }
}

static hone_status counts(hone_call *call, const int64_t *n, const hone_tensor_desc *x, hone_error *error) {
  if (call->n_outputs < 2 || !call->output[1]) return HONE_OK;
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_I64, x->rank, x->dim);
  const hone_status s = call->output[1]->data ? HONE_OK : call->alloc_output(call, 1, &d, error);
  if (!s) hn_copy_elements(call->output[1]->data, n, hone_desc_count(&d), HONE_DTYPE_I64);
  return s;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const hone_string *from = x->data;
  const hone_string delimiter = hn_node_text(call->node, "delimiter", "");
  const splitter p = {delimiter.ptr, delimiter.len, hone_node_int(call->node, "maxsplit", -1)};
  const int64_t count = hn_count(x);
  int64_t *parts = hn_scratch(call, count, sizeof *parts, error), widest = 0;
  if (!parts) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < count; i++) {
    if (i % 256 == 0 && call->stopped(call)) return HONE_ERROR_CANCELLED;
    parts[i] = split(&p, from[i], NULL);
    widest = hn_max(widest, parts[i]);
  }
  int64_t dim[HONE_MAX_RANK];
  for (int32_t i = 0; i < x->desc.rank; i++) dim[i] = x->desc.dim[i];
  dim[x->desc.rank] = widest;
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_STRING, x->desc.rank + 1, dim);
  hone_status s = counts(call, parts, &x->desc, error);
  if (s || !call->output[0]) return s;
  if ((s = call->alloc_output(call, 0, &d, error))) return s;
  hone_string *to = call->output[0]->data;
  for (int64_t i = 0; i < count; i++, to += widest) {
    for (int64_t k = parts[i]; k < widest; k++) to[k] = (hone_string){"", 0};
    split(&p, from[i], to);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "delimiter", .type = HONE_ATTR_STRING}, {.name = "maxsplit", .type = HONE_ATTR_INT}, {0}};

HN_OP(string_split) = {HN_OP_HEAD,
                       .op_type = "StringSplit",
                       .since = 20,
                       .flags = HONE_OP_DATA_DEPENDENT,
                       HN_INPUTS(1, 1),
                       HN_OUTPUTS(2, 2),
                       .types = HN_TYPES_STRING,
                       .attrs = attrs,
                       .infer = infer,
                       .reference = reference};
