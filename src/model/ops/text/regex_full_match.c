/* RegexFullMatch: whether a pattern matches all of a string. */
#include "model/ops/text/regex.h"

static hone_status make(const hone_node *node, hn_regex **p, hone_error *error) {
  return hn_regex_make(node, hn_node_text(node, "pattern", ""), true, p, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_string *x = call->input[0]->data;
  bool *y = call->output[0]->data;
  hn_regex *p;
  hone_status s = make(call->node, &p, error);
  for (int64_t i = 0, n = hn_count(call->input[0]); !s && i < n; i++)
    s = i % 64 == 0 && call->stopped(call) ? HONE_ERROR_CANCELLED
                                           : hn_regex_match(call, p, x[i], i, &y[i], error);
  hn_regex_free(p);
  return s;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_regex *p;
  hn_infer_set(io, 0, HONE_DTYPE_BOOL, io->input[0]->rank, io->input[0]->dim);
  const hone_status s = make(io->node, &p, error);
  hn_regex_free(p);
  return s;
}

static const hone_attr_desc attrs[] = {{.name = "pattern", .type = HONE_ATTR_STRING, .required = true}, {0}};

HN_OP(regex_full_match) = {HN_OP_HEAD,
                           .op_type = "RegexFullMatch",
                           .since = 20,
                           HN_INPUTS(1, 1),
                           HN_OUTPUTS(1, 1),
                           .types = HN_TYPES_STRING,
                           .attrs = attrs,
                           .infer = infer,
                           .reference = reference};
