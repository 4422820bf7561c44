/* See from_nodes.h. */
#include "cli/commands/op/from_nodes.h"

#include "cli/commands/op/node_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hone_status refuse(hone_error *error, const hone_subgraph_node *n, const char *why) {
  *error = (hone_error){.status = HONE_ERROR_UNSUPPORTED};
  snprintf(error->what, sizeof error->what, "%s '%.120s' %s", hone_node_op(n->node), hone_node_name(n->node),
           why);
  snprintf(
      error->expected, sizeof error->expected,
      "functions of f32 elements, reductions, Softmax, MatMul, Gemm, Conv, BatchNormalization, Transpose and "
      "changes of shape");
  snprintf(error->hint, sizeof error->hint, "hone op new NAME --general makes a folder for any operator");
  return HONE_ERROR_UNSUPPORTED;
}

static uint32_t operands_of(const hone_subgraph *p) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_values; i++) n += op_is_operand(&p->value[i]);
  return n;
}

/* ---- NAME_nodes.h */

static hone_status put_nodes(const hone_subgraph *p, const char *name, op_text *out, hone_error *error) {
  op_put(out,
         "/* The nodes one after the other: x are the operator's inputs, y is its result. */\n#ifndef "
         "%s_nodes_h\n"
         "#define %s_nodes_h\n\n#include <hone/nodes.h>\n\n"
         "static inline void %s_nodes(hone_nodes *n, const hone_value *x, hone_value *y) {\n",
         name, name, name);
  for (uint32_t k = 0; k + 1 < p->n_nodes; k++)
    op_put(out, "%s%s", k ? ", " : "  hone_value ", p->value[p->node[k].out].name);
  op_put(out, p->n_nodes > 1 ? ";\n" : "");
  for (uint32_t k = 0; k < p->n_nodes; k++) {
    op_put(out, "  /* %s */\n", hone_node_op(p->node[k].node));
    const char *why = op_put_node(p, k, out);
    if (why) return refuse(error, &p->node[k], why);
  }
  op_put(out, "}\n\n#endif\n");
  return HONE_OK;
}

/* ---- NAME.json */

/* "%x0 %x2": `to`'s values that are the operands of `from`, in its order; false: they do not read the same.
 */
static bool same_operands(const hone_subgraph *from, const hone_subgraph *to, char *buf, size_t size) {
  size_t n = 0;
  uint32_t found = 0;
  buf[0] = 0;
  for (uint32_t i = 0; i < from->n_values; i++) {
    if (!op_is_operand(&from->value[i])) continue;
    const hone_subgraph_value *same = NULL;
    for (uint32_t k = 0; k < to->n_values && !same; k++)
      if (op_is_operand(&to->value[k]) && strcmp(to->value[k].value, from->value[i].value) == 0)
        same = &to->value[k];
    if (!same || n >= size) return false;
    n += (size_t)snprintf(buf + n, size - n, "%s%%%s", n ? " " : "", same->name);
    found++;
  }
  return n < size && found == operands_of(to);
}

/* Where a list is read first in a line: behind '%'; NULL: nowhere. */
static const char *place_of(const char *line, size_t n, const char *name) {
  const size_t length = strlen(name);
  for (size_t i = 0; i + length < n; i++)
    if (line[i] == '%' && strncmp(line + i + 1, name, length) == 0 &&
        !strchr("0123456789", line[i + 1 + length]))
      return line + i;
  return NULL;
}

/* " where value(%x3) == [0, -1, 64]" */
static void put_condition(const hone_subgraph_value *v, bool first, op_text *out) {
  const int64_t *list = v->constant->data;
  op_put(out, " %s value(%%%s) == [", first ? "where" : "and", v->name);
  for (int64_t i = 0; i < v->desc.dim[0]; i++) op_put(out, "%s%lld", i ? ", " : "", (long long)list[i]);
  op_put(out, "]");
}

/* A line of the pattern, as a text of JSON; lists are constants of these values. */
static void put_line(const hone_subgraph *p, const char *line, size_t n, op_text *out) {
  op_put(out, "\n          \"");
  for (size_t i = 0; i < n; i++) {
    for (uint32_t k = 0; k < p->n_values; k++)
      if (op_is_list(&p->value[k]) && !p->value[k].is_number &&
          place_of(line, n, p->value[k].name) == line + i)
        op_put_char(out, '!');
    if (line[i] == '"' || line[i] == '\\') op_put_char(out, '\\');
    op_put_char(out, line[i]);
  }
  bool first = true;
  for (uint32_t k = 0; k < p->n_values; k++)
    if (op_is_list(&p->value[k]) && !p->value[k].is_number && place_of(line, n, p->value[k].name)) {
      put_condition(&p->value[k], first, out);
      first = false;
    }
  op_put(out, "\"");
}

static void put_pattern(const hone_subgraph *p, const char *inputs, op_text *out) {
  const char *comma = "";
  op_put(out, "{\"text\": [");
  for (const char *line = p->pattern; *line;) {
    const size_t n = strcspn(line, "\n");
    op_put(out, "%s", comma);
    put_line(p, line, n, out);
    comma = ",";
    line += n + (line[n] == '\n');
  }
  op_put(out, "],\n       \"inputs\": \"%s\"}", inputs);
}

static void put_input(const hone_subgraph_value *v, const char *types, op_text *out) {
  op_put(out,
         "\n      {\"name\": \"%s\", \"param_type\": \"required\", \"format\": [\"ND\"], %s, \"example\": [",
         v->name, types);
  for (int32_t i = 0; i < v->desc.rank; i++)
    op_put(out, "%s%lld", i ? ", " : "", (long long)(v->desc.dim[i] < 0 ? 2 : v->desc.dim[i]));
  op_put(out, "]}");
}

static void put_json(const hone_subgraph *p, const hone_subgraph *other, const char *op, op_text *out) {
  static const char types[] = "\"type\": [\"float\", \"float16\", \"bfloat16\", \"double\"]";
  char inputs[600];
  const char *comma = "";
  op_put(out, "[\n  {\n    \"op\": \"%s\",\n    \"domain\": \"custom\",\n    \"about\": \"", op);
  for (uint32_t k = 0; k < p->n_nodes; k++) op_put(out, "%s%s", k ? ", " : "", hone_node_op(p->node[k].node));
  op_put(out, "%s\",\n    \"version\": \"1.0.0\",\n    \"kind\": \"general\",\n    \"input_desc\": [",
         p->n_nodes > 1 ? " in one" : "");
  for (uint32_t i = 0; i < p->n_values; i++) {
    if (!op_is_operand(&p->value[i])) continue;
    op_put(out, "%s", comma);
    put_input(&p->value[i], types, out);
    comma = ",";
  }
  op_put(
      out,
      "\n    ],\n    \"output_desc\": [\n      {\"name\": \"y\", \"param_type\": \"required\", \"format\": "
      "[\"ND\"], "
      "%s, \"shape\": \"function\"}\n    ],\n    \"attr\": [],\n    \"functions\": [\"need\", \"count\"],\n"
      "    \"pattern\": [\n      ",
      types);
  if (same_operands(p, p, inputs, sizeof inputs)) put_pattern(p, inputs, out);
  if (other && strcmp(other->pattern, p->pattern) != 0 && same_operands(p, other, inputs, sizeof inputs)) {
    op_put(out, ",\n      ");
    put_pattern(other, inputs, out);
  }
  op_put(out, "\n    ]\n  }\n]\n");
}

static bool can(const hone_subgraph *p) {
  op_text ignored = {0};
  hone_error e = {0};
  const bool good = put_nodes(p, "x", &ignored, &e) == HONE_OK;
  free(ignored.ptr);
  return good;
}

hone_status op_from_nodes(const hone_subgraph *p, const hone_subgraph *rewritten, const char *name,
                          const char *op, op_from *out, hone_error *error) {
  char inputs[600];
  /* What reads other values behind the passes (weights that were folded) would never be met as it was. */
  if (rewritten && !same_operands(p, rewritten, inputs, sizeof inputs) && can(rewritten)) {
    p = rewritten;
    rewritten = NULL;
  }
  const uint32_t n = operands_of(p);
  if (!n || n > 16)
    return refuse(error, &p->node[0],
                  n ? "and the others read more than 16 values" : "reads nothing but numbers");
  const hone_status status = put_nodes(p, name, &out->nodes, error);
  if (status != HONE_OK) {
    free(out->nodes.ptr);
    out->nodes = (op_text){0};
    return status;
  }
  put_json(p, rewritten, op, &out->json);
  out->inputs = n;
  return HONE_OK;
}
