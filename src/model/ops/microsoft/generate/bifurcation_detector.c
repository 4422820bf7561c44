/* BifurcationDetector, for decoding that guesses ahead: the predicted tokens are taken as long as they repeat
 * the source from where it matched before, and one more; then the end of all tokens is looked for in the
 * source, by n-grams of growing length, until it stands there once. */
#include "model/ops/microsoft/common/inner.h"

enum { SOURCE, CURRENT, PLACE, PREDICTED };
enum { TOKENS, FOUND };

static hone_status sizes(const hone_node *node, int64_t *least, int64_t *most, hone_error *error) {
  *least = hone_node_int(node, "min_ngram_size", 1), *most = hone_node_int(node, "max_ngram_size", 3);
  return *least >= 1 && *most >= *least
             ? HONE_OK
             : hn_op_bad(node, error, "n-grams of %lld to %lld tokens", (long long)*least, (long long)*most);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  int64_t least, most;
  hone_status s = sizes(io->node, &least, &most, error);
  for (uint32_t i = CURRENT; i <= PREDICTED && !s; i++) s = hn_infer_same_dtype(io, SOURCE, i, error);
  for (uint32_t i = SOURCE; i <= PREDICTED && !s; i++)
    if (i != PLACE) s = hn_infer_vector(io, i, HONE_DIM_UNKNOWN, error);
  const hone_tensor_desc *place = io->input[PLACE];
  if (!s && hone_desc_known(place) && hone_desc_count(place) != 1)
    s = hn_op_bad(io->node, error, "prev_suffix_match_idx is not one number");
  if (s) return s;
  const int64_t n = hn_has_input(io, PREDICTED) ? HONE_DIM_UNKNOWN : hn_dim(io->input[CURRENT], 0);
  hn_infer_set(io, TOKENS, HONE_DTYPE_I64, 1, &n);
  hn_infer_set(io, FOUND, HONE_DTYPE_I64, place->rank, place->dim);
  return HONE_OK;
}

/* At most the current tokens and the predicted ones. */
static hone_status most_tokens(const hone_infer *io, hone_error *error) {
  const hone_status s = infer(io, error);
  if (!s && io->output[TOKENS] && hn_has_input(io, PREDICTED)) {
    const int64_t a = hn_dim(io->input[CURRENT], 0), b = hn_dim(io->input[PREDICTED], 0);
    io->output[TOKENS]->dim[0] = a < 0 || b < 0 ? HONE_DIM_UNKNOWN : a + b;
  }
  return s;
}

/* Where `what` stands first in `in`; n where it does not. */
static int64_t find(const int64_t *in, int64_t n, const int64_t *what, int64_t size) {
  for (int64_t i = 0; i + size <= n; i++)
    if (memcmp(in + i, what, (size_t)size * sizeof *in) == 0) return i;
  return n;
}

static int64_t match(const int64_t *source, int64_t n, const int64_t *tokens, int64_t count, int64_t least,
                     int64_t most) {
  int64_t found = -1;
  for (int64_t size = least; size <= most && size <= count; size++) {
    const int64_t *end = tokens + count - size;
    const int64_t at = find(source, n, end, size);
    if (at == n) break;
    found = at + size;
    if (found >= n) break;
    const int64_t rest = n - at - 1;
    if (find(source + at + 1, rest, end, size) < rest) found = -1;
  }
  return found;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *given = hn_call_has(call, PREDICTED) ? call->input[PREDICTED] : NULL;
  const int64_t *source = call->input[SOURCE]->data, *current = call->input[CURRENT]->data;
  const int64_t n = hn_count(call->input[SOURCE]), had = hn_count(call->input[CURRENT]);
  int64_t least, most, more = 0;
  hone_status s = sizes(call->node, &least, &most, error);
  if (s) return s;
  if (given) {
    const int64_t from = hn_get_i64(call->input[PLACE], 0), *predicted = given->data;
    if (from < 0 || from > n || hn_count(given) != n + 1 - from)
      return hn_op_bad(call->node, error, "%lld predicted tokens, from place %lld of %lld",
                       (long long)hn_count(given), (long long)from, (long long)n);
    while (more < n - from && predicted[more] == source[from + more]) more++;
    more++;
  }
  const int64_t count = had + more;
  int64_t *tokens = hn_scratch(call, count, sizeof *tokens, error);
  if (!tokens) return HONE_ERROR_MEMORY;
  if (had) memcpy(tokens, current, (size_t)had * sizeof *tokens);
  if (more) memcpy(tokens + had, given->data, (size_t)more * sizeof *tokens);
  if (call->output[TOKENS]) {
    const hone_tensor_desc d = hone_desc(HONE_DTYPE_I64, 1, &count);
    if (!call->output[TOKENS]->data && (s = call->alloc_output(call, TOKENS, &d, error))) return s;
    if (count) memcpy(call->output[TOKENS]->data, tokens, (size_t)count * sizeof *tokens);
  }
  if (call->n_outputs > FOUND && call->output[FOUND]) {
    if (!call->output[FOUND]->data && (s = call->alloc_output(call, FOUND, &call->input[PLACE]->desc, error)))
      return s;
    *(int64_t *)call->output[FOUND]->data = match(source, n, tokens, count, least, most);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "min_ngram_size", .type = HONE_ATTR_INT},
                                       {.name = "max_ngram_size", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(bifurcation_detector) = {HONE_DESC_HEAD(hone_op_desc),
                               .domain = "com.microsoft",
                               .op_type = "BifurcationDetector",
                               .since = 1,
                               .flags = HONE_OP_DATA_DEPENDENT,
                               HN_INPUTS(3, 4),
                               HN_OUTPUTS(1, 2),
                               .types = HONE_TYPES(HONE_DTYPE_I64),
                               .attrs = attrs,
                               .infer = infer,
                               .most = most_tokens,
                               .reference = reference};
