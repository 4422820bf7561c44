#include "model/ops/product/equation.h"

#include <ctype.h>
#include <string.h>

static const char *skip(const char *p) {
  while (*p == ' ') p++;
  return p;
}

/* Reads letters up to a comma, an arrow or the end. rank < 0: the result's term, whose ellipsis has `dots`
 * dimensions. */
static hone_status read_term(const hone_node *node, const char **at, int32_t rank, int32_t *dots,
                             hn_einsum_term *t, hone_error *error) {
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
      for (int32_t i = own - 1; i >= 0; i--) t->label[t->n++] = (uint8_t)(HN_EINSUM_LETTERS + i);
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
static hone_status implicit(const hone_node *node, hn_einsum *e, int32_t dots, hone_error *error) {
  int32_t seen[HN_EINSUM_LETTERS] = {0};
  for (uint32_t i = 0; i < e->n_in; i++)
    for (int32_t k = 0; k < e->in[i].n; k++)
      if (e->in[i].label[k] < HN_EINSUM_LETTERS) seen[e->in[i].label[k]]++;
  e->out.n = 0;
  for (int32_t i = dots - 1; i >= 0; i--) e->out.label[e->out.n++] = (uint8_t)(HN_EINSUM_LETTERS + i);
  for (int32_t k = 0; k < HN_EINSUM_LETTERS; k++) {
    int32_t letter = k < 26 ? k + 26 : k - 26;
    if (seen[letter] != 1) continue;
    if (e->out.n >= HONE_MAX_RANK)
      return hn_op_refuse(node, error, "a result of more than %d dimensions", HONE_MAX_RANK);
    e->out.label[e->out.n++] = (uint8_t)letter;
  }
  return HONE_OK;
}

hone_status hn_einsum_parse(const hone_node *node, const hone_tensor_desc *const *in, uint32_t n,
                            hn_einsum *e, hone_error *error) {
  const char *p = hone_node_string(node, "equation", "");
  int32_t dots = 0;
  if (n > HN_EINSUM_OPERANDS) return hn_op_refuse(node, error, "%u operands", n);
  e->n_in = n;
  for (int32_t i = 0; i < HN_EINSUM_LABELS; i++) e->dim[i] = -2;
  for (uint32_t i = 0; i < n; i++) {
    hone_status status = read_term(node, &p, in[i]->rank, &dots, &e->in[i], error);
    if (status) return status;
    for (int32_t k = 0; k < e->in[i].n; k++) {
      int64_t *have = &e->dim[e->in[i].label[k]], d = in[i]->dim[k];
      /* Sizes of 1 broadcast, as numpy lets them; what is not known yet may turn out to be more than 1. */
      if (*have == -2 || *have == 1 || (*have == -1 && d > 1))
        *have = d < 0 ? -1 : d;
      else if (d >= 0 && d != 1 && *have >= 0 && d != *have)
        return hn_op_bad(node, error, "one letter has sizes %lld and %lld", (long long)*have, (long long)d);
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

hone_status hn_einsum_loops(const hone_node *node, const hone_tensor_desc *const *in, const hn_einsum *e,
                            hn_einsum_nest *t, hone_error *error) {
  int32_t place[HN_EINSUM_LABELS];
  *t = (hn_einsum_nest){.n = e->n_in};
  for (int32_t i = 0; i < HN_EINSUM_LABELS; i++) place[i] = -1;
  for (int32_t k = 0; k < e->out.n; k++) {
    place[e->out.label[k]] = t->rank;
    t->dim[t->rank++] = e->dim[e->out.label[k]];
  }
  for (int32_t i = 0; i < HN_EINSUM_LABELS; i++) {
    if (e->dim[i] == -2 || place[i] >= 0) continue;
    if (t->rank == HN_EINSUM_LOOPS) return hn_op_refuse(node, error, "more than %d letters", HN_EINSUM_LOOPS);
    place[i] = t->rank;
    t->dim[t->rank++] = e->dim[i];
    t->summed++;
  }
  for (uint32_t i = 0; i < t->n; i++) {
    int64_t step = 1;
    for (int32_t k = e->in[i].n - 1; k >= 0; k--) { /* a letter that is there twice walks the diagonal */
      int64_t d = in[i]->dim[k];
      if (d != 1) t->step[i][place[e->in[i].label[k]]] += step;
      step *= d;
    }
  }
  return HONE_OK;
}
