#include "cli/commands/op/from.h"

#include "cli/commands/op/formulas.h"
#include "cli/commands/op/from_nodes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void put_lines(const hone_subgraph *p, const char *type, const char *indent, op_form f, op_text *out) {
  for (uint32_t k = 0; k < p->n_nodes; k++) {
    op_put(out, "%sconst %s %s = ", indent, type, p->value[p->node[k].out].name);
    op_put_formula(p, &p->node[k], f, out);
    op_put(out, ";\n");
  }
}

static const char *result(const hone_subgraph *p) { return p->value[p->node[p->n_nodes - 1].out].name; }

static hone_status refuse(hone_error *error, const hone_subgraph_node *n, const char *why) {
  *error = (hone_error){.status = HONE_ERROR_UNSUPPORTED};
  snprintf(error->what, sizeof error->what, "%s '%.120s' %s", hone_node_op(n->node), hone_node_name(n->node),
           why);
  snprintf(error->expected, sizeof error->expected,
           "elementwise functions of values of one shape and of numbers");
  snprintf(error->hint, sizeof error->hint, "hone op new NAME --general makes a folder for any operator");
  return HONE_ERROR_UNSUPPORTED;
}

static hone_status check(const hone_subgraph *p, hone_error *error) {
  const hone_tensor_desc *y = &p->value[p->node[p->n_nodes - 1].out].desc;
  for (uint32_t k = 0; k < p->n_nodes; k++) {
    const hone_subgraph_node *n = &p->node[k];
    const op_formula *f = op_formula_of(n);
    if (!f || !op_formula_has_vectors(f)) return refuse(error, n, "cannot be written down by itself");
    for (uint32_t i = 0; i < n->n_in; i++) {
      const hone_subgraph_value *v = n->in[i] >= 0 ? &p->value[n->in[i]] : NULL;
      if (!v) return refuse(error, n, "has an operand that is left out");
      if (v->is_number ? !isfinite(v->number) : v->desc.rank != y->rank || v->desc.dtype != HONE_DTYPE_F32)
        return refuse(error, n, "has an operand of another shape or type than its result");
      for (int32_t d = 0; !v->is_number && d < y->rank; d++)
        if (v->desc.dim[d] != y->dim[d])
          return refuse(error, n, "has an operand of another shape than its result");
    }
  }
  return HONE_OK;
}

static bool from_outside(const hone_subgraph_value *v) { return v->node < 0 && !v->is_number; }

/* "%x1 %x0": the values of `to` that are those of `from`, in its order; false: they do not read the same. */
static bool same_inputs(const hone_subgraph *from, const hone_subgraph *to, char *buf, size_t size) {
  size_t n = 0, left = 0;
  buf[0] = 0;
  for (uint32_t i = 0; i < to->n_values; i++) left += from_outside(&to->value[i]);
  for (uint32_t i = 0; i < from->n_values; i++) {
    bool found = !from_outside(&from->value[i]);
    for (uint32_t k = 0; k < to->n_values && !found; k++) {
      found = from_outside(&to->value[k]) && strcmp(to->value[k].value, from->value[i].value) == 0;
      if (!found) continue;
      n += (size_t)snprintf(buf + n, n < size ? size - n : 0, "%s%%%s", n ? " " : "", to->value[k].name);
      left--;
    }
    if (!found || n >= size) return false;
  }
  return left == 0;
}

static void put_pattern(const char *pattern, const char *inputs, op_text *out) {
  const char *comma = "";
  op_put(out, "{\"text\": [");
  for (const char *line = pattern; *line;) {
    const int n = (int)strcspn(line, "\n");
    op_put(out, "%s\n        \"%.*s\"", comma, n, line);
    comma = ",";
    line += n + (line[n] == '\n');
  }
  op_put(out, "],\n       \"inputs\": \"%s\"}", inputs);
}

static void put_json(const hone_subgraph *p, const hone_subgraph *rewritten, const char *op, op_text *out) {
  static const char types[] = "\"type\": [\"float\", \"float16\", \"bfloat16\"]";
  const char *comma = "";
  op_put(out, "[\n  {\n    \"op\": \"%s\",\n    \"domain\": \"custom\",\n    \"about\": \"", op);
  for (uint32_t k = 0; k < p->n_nodes; k++) op_put(out, "%s%s", k ? ", " : "", hone_node_op(p->node[k].node));
  op_put(out,
         " in one\",\n    \"version\": \"1.0.0\",\n    \"kind\": \"elementwise\",\n    \"input_desc\": [");
  const char *first = NULL;
  for (uint32_t i = 0; i < p->n_values; i++) {
    if (!from_outside(&p->value[i])) continue;
    if (!first) first = p->value[i].name;
    op_put(out, "%s\n      {\"name\": \"%s\", \"param_type\": \"required\", \"format\": [\"ND\"], %s}", comma,
           p->value[i].name, types);
    comma = ",";
  }
  op_put(out,
         "\n    ],\n    \"output_desc\": [\n      {\"name\": \"y\", \"param_type\": \"required\", "
         "\"format\": [\"ND\"], "
         "%s, \"shape\": \"%s\"}\n    ],\n    \"attr\": [],\n    \"pattern\": [\n      ",
         types, first ? first : "");
  put_pattern(p->pattern, p->inputs, out);
  char inputs[600];
  if (rewritten && strcmp(rewritten->pattern, p->pattern) != 0 &&
      same_inputs(p, rewritten, inputs, sizeof inputs)) {
    op_put(out, ",\n      ");
    put_pattern(rewritten->pattern, inputs, out);
  }
  op_put(out, "\n    ]\n  }\n]\n");
}

static void put_cuda(const hone_subgraph *p, const char *name, op_text *out) {
  uint32_t inputs = 0;
  for (uint32_t i = 0; i < p->n_values; i++) inputs += from_outside(&p->value[i]);
  op_put(out, "/* On a GPU, 16 bytes a thread. The struct %s_args comes from %s.json. */\n\nHN_FN float one(",
         name, name);
  for (uint32_t i = 0, k = 0; i < p->n_values; i++)
    if (from_outside(&p->value[i])) op_put(out, "%sfloat %s", k++ ? ", " : "", p->value[i].name);
  op_put(out, ") {\n");
  put_lines(p, "float", "  ", OP_GPU, out);
  op_put(out, "  return %s;\n}\n", result(p));
  for (int two = 0; two < 2; two++) {
    const int per = two ? 8 : 4;
    const char *end = two ? " \\\n" : "\n";
    op_put(out,
           two ? "\n#define OF_TWO_BYTES(name, read, write) \\\n  HN_KERNEL(name, %s_args, args) { \\\n"
               : "\nHN_KERNEL(%s_f32, ",
           name);
    if (!two) op_put(out, "%s_args, args) {\n", name);
    op_put(out, "  const u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * %d;%s", per, end);
    const char *type = two ? "u16" : "float";
    for (uint32_t i = 0; i < p->n_values; i++)
      if (from_outside(&p->value[i]))
        op_put(out, "  const %s *%s = (const %s *)args.%s + i;%s", type, p->value[i].name, type,
               p->value[i].name, end);
    op_put(out, "  %s *y = (%s *)args.y + i;%s  if (i + %d <= args.n && !(((u64)y", type, type, end, per);
    for (uint32_t i = 0; i < p->n_values; i++)
      if (from_outside(&p->value[i])) op_put(out, " | (u64)%s", p->value[i].name);
    op_put(out, ") & 15)) {%s    hn_u4 r;%s", end, end);
    for (uint32_t i = 0; i < p->n_values; i++)
      if (from_outside(&p->value[i]))
        op_put(out, "    const hn_u4 v_%s = hn_ld16(%s);%s", p->value[i].name, p->value[i].name, end);
    op_put(out, "    HN_UNROLL%s    for (int k = 0; k < 4; k++)%s      r.v[k] = ", end, end);
    for (int half = 0; half <= two; half++) {
      op_put(out, two ? (half ? " | (u32)write(one(" : "(u32)write(one(") : "hn_bits(one(");
      for (uint32_t i = 0, k = 0; i < p->n_values; i++)
        if (from_outside(&p->value[i]))
          op_put(out,
                 two ? (half ? "%sread((u16)(v_%s.v[k] >> 16))" : "%sread((u16)v_%s.v[k])")
                     : "%shn_from_bits(v_%s.v[k])",
                 k++ ? ", " : "", p->value[i].name);
      op_put(out, half ? ")) << 16" : "))");
    }
    op_put(
        out,
        ";%s    hn_st16(y, r);%s  } else {%s    for (u64 k = 0; k < %d && i + k < args.n; k++) y[k] = %sone(",
        end, end, end, per, two ? "write(" : "");
    for (uint32_t i = 0, k = 0; i < p->n_values; i++)
      if (from_outside(&p->value[i]))
        op_put(out, two ? "%sread(%s[k])" : "%s%s[k]", k++ ? ", " : "", p->value[i].name);
    op_put(out, "%s);%s  }%s%s", two ? ")" : "", end, end, two ? "  }\n" : "}\n");
  }
  op_put(out, "OF_TWO_BYTES(%s_f16, hn_f16, hn_to_f16)\nOF_TWO_BYTES(%s_bf16, hn_bf16, hn_to_bf16)\n", name,
         name);
  (void)inputs;
}

/* So many operations a lane that the processor does not look far enough ahead by itself. */
static bool takes_long(const hone_subgraph *p) {
  static const char *const long_ones[] = {"Exp", "Tanh", "Sigmoid"};
  for (uint32_t k = 0; k < p->n_nodes; k++)
    for (size_t i = 0; i < sizeof long_ones / sizeof *long_ones; i++)
      if (strcmp(hone_node_op(p->node[k].node), long_ones[i]) == 0) return true;
  return false;
}

hone_status op_from_part(const hone_subgraph *p, const hone_subgraph *rewritten, const char *name,
                         const char *op, op_from *out, hone_error *error) {
  *out = (op_from){0};
  uint32_t inputs = 0;
  hone_error ignored = {0};
  if (check(p, &ignored) != HONE_OK) return op_from_nodes(p, rewritten, name, op, out, error);
  for (uint32_t i = 0; i < p->n_values; i++) inputs += from_outside(&p->value[i]);
  if (!inputs) return refuse(error, &p->node[0], "reads nothing but numbers");
  const bool ahead = takes_long(p);
  put_json(p, rewritten, op, &out->json);
  op_put(&out->reference,
         "/* What the nodes compute one by one, in f64: kernels are tested against this. */\n#include "
         "\"%s_op.h\"\n\n"
         "void %s_ref(const %s_attrs *attrs, const hone_array in[%u], const hone_array out[1]) {\n  "
         "(void)attrs;\n"
         "  for (int64_t i = 0; i < out[0].count; i++) {\n",
         name, name, name, inputs);
  for (uint32_t i = 0, k = 0; i < p->n_values; i++)
    if (from_outside(&p->value[i]))
      op_put(&out->reference, "    const double %s = in[%u].data[i];\n", p->value[i].name, k++);
  put_lines(p, "double", "    ", OP_WIDE, &out->reference);
  op_put(&out->reference, "    out[0].data[i] = %s;\n  }\n}\n", result(p));
  op_put(&out->cpu,
         "/* On the processor: one pass over all operands. Compiled once for each instruction set; "
         "hone/kernel.h says what a\n"
         " * hone_vf can do. */\n#include \"%s_op.h\"\n\nvoid HONE_KERNEL(%s)(const %s_attrs *attrs",
         name, name, name);
  for (uint32_t i = 0; i < p->n_values; i++)
    if (from_outside(&p->value[i])) op_put(&out->cpu, ", const float *%s_all", p->value[i].name);
  op_put(&out->cpu,
         ", float *y, int64_t n) {\n  (void)attrs;\n  for (int64_t i = 0; i < n; i += HONE_LANES) {\n"
         "    const int k = hone_lanes(n - i); /* the last ones may be fewer */\n");
  for (uint32_t i = 0; i < p->n_values; i++)
    if (from_outside(&p->value[i]))
      op_put(&out->cpu, "%s%s%s    const hone_vf %s = hone_load(%s_all + i, k);\n",
             ahead ? "    hone_ahead(" : "", ahead ? p->value[i].name : "", ahead ? "_all + i);\n" : "",
             p->value[i].name, p->value[i].name);
  put_lines(p, "hone_vf", "    ", OP_VECTOR, &out->cpu);
  op_put(&out->cpu, "    hone_ahead_written(y + i);\n    hone_store(y + i, %s, k);\n  }\n}\n", result(p));
  put_cuda(p, name, &out->cuda);
  return HONE_OK;
}
