/* Tokenizer: every string's tokens along a new last dimension, filled up with pad_value. Tokens are what a
 * pattern matches (the first match, of several the longest), or what patterns of separators leave, each of
 * which divides what those before it have left; the one separator "" makes a token of each character. Tokens
 * of fewer than mincharnum characters are dropped. With `mark`, a start and an end of text stand around each
 * string's. */
#include "base/mem.h"
#include "model/ops/common/bulk.h"
#include "model/ops/microsoft/common/inner.h"
#include "model/ops/text/regex.h"

#include <string.h>

typedef struct tokenizer {
  hone_call *call;
  hn_regex *token, **separator;
  size_t n_separators;
  bool letters; /* each character is a token */
  int64_t least;
  /* what was found so far */
  hone_string *found;
  size_t n, room;
  int64_t element;
} tokenizer;

static void tokenizer_free(tokenizer *t) {
  hn_regex_free(t->token);
  for (size_t i = 0; t->separator && i < t->n_separators; i++) hn_regex_free(t->separator[i]);
  hn_free(t->separator);
  hn_free(t->found);
}

static hone_status make(const hone_node *node, tokenizer *t, hone_error *error) {
  size_t n = 0;
  const hone_string *separators = hone_node_strings(node, "separators", &n);
  const hone_string token = hn_node_text(node, "tokenexp", "");
  t->least = hone_node_int(node, "mincharnum", 1);
  if (t->least < 1) return hn_op_bad(node, error, "mincharnum is %lld", (long long)t->least);
  if ((n > 0) == (token.len > 0))
    return hn_op_refuse(node, error, "one of separators and tokenexp says what tokens are, and not both");
  if (token.len) return hn_regex_make(node, token, false, &t->token, error);
  t->letters = n == 1 && separators[0].len == 0;
  if (t->letters)
    return t->least > 1 ? hn_op_bad(node, error, "a character is fewer than mincharnum") : HONE_OK;
  t->separator = hn_calloc(n, sizeof *t->separator);
  if (!t->separator) return hn_fail_memory(error, n * sizeof *t->separator, "separators");
  t->n_separators = n;
  for (size_t i = 0; i < n; i++) {
    if (!separators[i].len) return hn_op_bad(node, error, "separator %zu of several is empty", i);
    const hone_status s = hn_regex_make(node, separators[i], false, &t->separator[i], error);
    if (s) return s;
  }
  return HONE_OK;
}

/* The bytes of the character at s[at]. */
static size_t character(hone_string s, size_t at) {
  size_t n = 1;
  while (at + n < s.len && ((unsigned char)s.ptr[at + n] & 0xc0) == 0x80) n++;
  return n;
}

static hone_status keep(tokenizer *t, const char *p, size_t n, hone_error *error) {
  int64_t count = 0;
  const hone_string s = {p, n};
  for (size_t at = 0; at < n && count < t->least; at += character(s, at)) count++;
  if (count < t->least) return HONE_OK;
  if (t->n == t->room) {
    const size_t room = t->room ? 2 * t->room : 64;
    hone_string *grown = hn_realloc(t->found, room * sizeof *grown);
    if (!grown) return hn_fail_memory(error, room * sizeof *grown, "tokens");
    t->found = grown, t->room = room;
  }
  t->found[t->n++] = s;
  return HONE_OK;
}

/* What separators from number `at` on leave of s. */
static hone_status divide(tokenizer *t, hone_string s, size_t number, hone_error *error) {
  if (number == t->n_separators) return keep(t, s.ptr, s.len, error);
  hone_status status = HONE_OK;
  size_t begin, end;
  for (size_t from = 0, search = 0; !status && from < s.len;) {
    status = hn_regex_find(t->call, t->separator[number], s, search, t->element, &begin, &end, error);
    if (status) return status;
    if (begin == end && begin < s.len) { /* separates nothing */
      search = begin + character(s, begin);
      continue;
    }
    if (begin > from) status = divide(t, (hone_string){s.ptr + from, begin - from}, number + 1, error);
    from = search = end;
  }
  return status;
}

static hone_status tokens_of(tokenizer *t, hone_string s, hone_error *error) {
  hone_status status = HONE_OK;
  if (t->n_separators) return s.len ? divide(t, s, 0, error) : HONE_OK;
  for (size_t at = 0, begin, end; !status && at<s.len; at = end> begin ? end : begin + character(s, begin)) {
    begin = at, end = at + (t->letters ? character(s, at) : 0);
    if (!t->letters) status = hn_regex_find(t->call, t->token, s, at, t->element, &begin, &end, error);
    if (!status && end > begin) status = keep(t, s.ptr + begin, end - begin, error);
    if (begin >= s.len) break;
  }
  return status;
}

static hone_status write(tokenizer *t, const int64_t *parts, int64_t count, int64_t widest,
                         hone_error *error) {
  const hone_tensor_desc *x = &t->call->input[0]->desc;
  const bool mark = hone_node_int(t->call->node, "mark", 0) != 0;
  const hone_string pad = hn_node_text(t->call->node, "pad_value", "");
  int64_t dim[HONE_MAX_RANK];
  for (int32_t i = 0; i < x->rank; i++) dim[i] = x->dim[i];
  if (widest && mark) widest += 2;
  dim[x->rank] = widest;
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_STRING, x->rank + 1, dim);
  const hone_status s = t->call->alloc_output(t->call, 0, &d, error);
  if (s) return s;
  hone_string *to = t->call->output[0]->data;
  const hone_string *from = t->found;
  for (int64_t i = 0; widest && i < count; i++, to += widest) {
    int64_t n = 0;
    if (mark) to[n++] = (hone_string){"\x02", 1};
    for (int64_t k = 0; k < parts[i]; k++) to[n++] = *from++;
    if (mark) to[n++] = (hone_string){"\x03", 1};
    while (n < widest) to[n++] = pad;
  }
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  tokenizer t = {.call = call};
  const hone_tensor *x = call->input[0];
  const int64_t count = hn_count(x);
  int64_t *parts = hn_scratch(call, count, sizeof *parts, error), widest = 0;
  hone_status s = parts ? make(call->node, &t, error) : HONE_ERROR_MEMORY;
  for (int64_t i = 0; !s && i < count; i++) {
    const size_t before = t.n;
    t.element = i;
    s = i % 64 == 0 && call->stopped(call) ? HONE_ERROR_CANCELLED
                                           : tokens_of(&t, ((const hone_string *)x->data)[i], error);
    parts[i] = (int64_t)(t.n - before);
    widest = hn_max(widest, parts[i]);
  }
  if (!s && call->output[0]) s = write(&t, parts, count, widest, error);
  tokenizer_free(&t);
  return s;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  tokenizer t = {0};
  int64_t dim[HONE_MAX_RANK] = {0};
  if (x->rank == 0 || x->rank > 2) return hn_op_bad(io->node, error, "the input has rank %d", (int)x->rank);
  for (int32_t i = 0; i < x->rank; i++) dim[i] = x->dim[i];
  if (x->rank > 0) dim[x->rank] = HONE_DIM_UNKNOWN;
  hn_infer_set(io, 0, HONE_DTYPE_STRING, x->rank < 0 ? -1 : x->rank + 1, dim);
  const hone_status s = make(io->node, &t, error);
  tokenizer_free(&t);
  return s;
}

static const hone_attr_desc attrs[] = {{.name = "mark", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "mincharnum", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "pad_value", .type = HONE_ATTR_STRING, .required = true},
                                       {.name = "separators", .type = HONE_ATTR_STRINGS},
                                       {.name = "tokenexp", .type = HONE_ATTR_STRING},
                                       {0}};

HN_OP(tokenizer) = {HONE_DESC_HEAD(hone_op_desc),
                    .domain = "com.microsoft",
                    .op_type = "Tokenizer",
                    .since = 1,
                    .flags = HONE_OP_DATA_DEPENDENT,
                    HN_INPUTS(1, 1),
                    HN_OUTPUTS(1, 1),
                    .types = HN_TYPES_STRING,
                    .attrs = attrs,
                    .infer = infer,
                    .reference = reference};
