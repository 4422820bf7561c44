#include "cli/commands/op/generate.h"

#include "cli/commands/op/generate_codes.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The best first: of tactics that promise the same, the first is taken. */
const op_tier op_tiers[] = {
    {"avx512", "HONE_ISA_AVX512",
     "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mprefer-vector-width=512"},
    {"avx2", "HONE_ISA_AVX2", "-mavx2 -mfma -mf16c"},
    {"scalar", "0", ""}};

/* Formats of this file are hone's own; names have been checked (op_is_name). */
#define PUT(...) op_put(out, __VA_ARGS__)

static const char *attr_type(const op_attr *a) {
  return a->type == HONE_ATTR_INT      ? "int64_t "
         : a->type == HONE_ATTR_FLOAT  ? "float "
         : a->type == HONE_ATTR_INTS   ? "const int64_t *"
         : a->type == HONE_ATTR_FLOATS ? "const float *"
                                       : "const char *";
}

static bool is_list(const op_attr *a) { return a->type == HONE_ATTR_INTS || a->type == HONE_ATTR_FLOATS; }

/* "const float *x, float *y, int64_t n" */
static void kernel_arguments(const op_definition *d, op_text *out) {
  if (d->kind == OP_GENERAL) {
    PUT("(const %s_attrs *attrs, const hone_step_run *run, hone_error *error)", d->stem);
    return;
  }
  PUT("(const %s_attrs *attrs", d->stem);
  for (uint32_t i = 0; i < d->n_in; i++)
    if (!d->in[i].measure) PUT(", const float *%s", d->in[i].name);
  PUT(", float *%s, int64_t n)", d->out[0].name);
}

static const char *kernel_result(const op_definition *d) {
  return d->kind == OP_GENERAL ? "hone_status" : "void";
}

static void upper(const char *stem, char buf[64]) {
  size_t i = 0;
  for (; stem[i] && i < 63; i++) buf[i] = (char)toupper((unsigned char)stem[i]);
  buf[i] = 0;
}

/* A comment or a text within C: what could end it is left out. */
static void put_words(const char *text, op_text *out) {
  for (; *text; text++)
    op_put_char(out, (*text == '*' && text[1] == '/') || (unsigned char)*text < 32 ? ' ' : *text);
}

/* What NAME_ref.c has beside, as the definition says. */
static void put_functions(const op_definition *d, const char *end, op_text *out) {
  if (d->functions & OP_HAS_NEED)
    PUT("/* %s_ref.c: bytes of packed constants and of workspace, of a step that is accepted. */\n"
        "hone_status %s_need(const %s_attrs *attrs, const hone_step *s, const hone_machine *m, "
        "hone_tactic_need *need, hone_error *error);\n%s",
        d->stem, d->stem, d->stem, end);
  if (d->functions & OP_HAS_PREPACK)
    PUT("/* %s_ref.c: fills blob from the step's constants, once. */\n"
        "hone_status %s_prepack(const %s_attrs *attrs, const hone_step *s, const hone_machine *m, void "
        "*blob, "
        "hone_error *error);\n%s",
        d->stem, d->stem, d->stem, end);
  if (d->functions & OP_HAS_COUNT)
    PUT("/* %s_ref.c: the operations of one execution. */\n"
        "void %s_count(const %s_attrs *attrs, const hone_infer *io, hone_cost *cost);\n%s",
        d->stem, d->stem, d->stem, end);
}

void op_generate_header(const op_definition *d, const op_parts *parts, op_text *out) {
  char guard[64];
  upper(d->stem, guard);
  PUT("/* ");
  put_words(d->op, out);
  PUT(": ");
  put_words(d->about, out);
  PUT(". Made from %s.json by `hone op build`: what is changed here is lost. */\n", d->stem);
  PUT("#ifndef %s_OP_H\n#define %s_OP_H\n\n#include <hone/kernel.h>\n\n", guard, guard);
  PUT("typedef struct %s_attrs {\n", d->stem);
  for (uint32_t i = 0; i < d->n_attrs; i++) {
    PUT("  %s%s;\n", attr_type(&d->attr[i]), d->attr[i].name);
    if (is_list(&d->attr[i])) PUT("  size_t n_%s; /* 0: not given */\n", d->attr[i].name);
  }
  if (!d->n_attrs) PUT("  char none;\n");
  PUT("} %s_attrs;\n\n%s_attrs %s_attrs_of(const hone_node *node);\n\n", d->stem, d->stem, d->stem);
  op_codes_struct(d, out);
  PUT("/* %s_ref.c: one execution in f64, the truth that kernels are compared with. in:", d->stem);
  for (uint32_t i = 0; i < d->n_in; i++)
    PUT(" %s%s", d->in[i].name, d->in[i].optional ? " (data NULL: left out)" : "");
  PUT("; out:");
  for (uint32_t i = 0; i < d->n_out; i++) PUT(" %s", d->out[i].name);
  PUT(", whose data is to be filled. */\n");
  PUT("void %s_ref(const %s_attrs *attrs, const hone_array in[%u], const hone_array out[%u]);\n\n", d->stem,
      d->stem, d->n_in, d->n_out);
  for (uint32_t i = 0; i < d->n_out; i++)
    if (d->out[i].shape == OP_SHAPE_FUNCTION) {
      PUT("/* %s_ref.c: rank and dimensions of io->output[...]->dim from those of io->input; unknown ones "
          "are < 0. */\n",
          d->stem);
      PUT("hone_status %s_shape(const %s_attrs *attrs, const hone_infer *io, hone_error *error);\n\n",
          d->stem, d->stem);
      break;
    }
  put_functions(d, "\n", out);
  if (parts->cpu) {
    PUT("/* %s_cpu.c, compiled once for each instruction set%s. */\n", d->stem,
        d->n_tiles ? " and value of HONE_TILE" : "");
    PUT("%s HONE_KERNEL(%s)", kernel_result(d), d->stem);
    kernel_arguments(d, out);
    PUT(";\n\n");
  }
  if (parts->launch) {
    PUT("/* %s_cuda.c: launches the kernels of text (%s_cuda.cu) with hone_cuda_launch (hone/cuda.h). */\n",
        d->stem, d->stem);
    PUT("hone_status %s_cuda(const %s_attrs *attrs, const hone_step_run *run, const char *text, hone_error "
        "*error);\n\n",
        d->stem, d->stem);
  }
  PUT("#endif\n");
}

/* ---- NAME_op.c */

static void put_attrs(const op_definition *d, op_text *out) {
  static const char *const getters[] = {[HONE_ATTR_INT] = "hone_node_int",
                                        [HONE_ATTR_FLOAT] = "hone_node_float",
                                        [HONE_ATTR_STRING] = "hone_node_string",
                                        [HONE_ATTR_INTS] = "hone_node_ints",
                                        [HONE_ATTR_FLOATS] = "hone_node_floats"};
  static const char *const words[] = {[HONE_ATTR_INT] = "INT",
                                      [HONE_ATTR_FLOAT] = "FLOAT",
                                      [HONE_ATTR_STRING] = "STRING",
                                      [HONE_ATTR_INTS] = "INTS",
                                      [HONE_ATTR_FLOATS] = "FLOATS"};
  PUT("static const hone_attr_desc attrs[] = {\n");
  for (uint32_t i = 0; i < d->n_attrs; i++)
    PUT("    {\"%s\", HONE_ATTR_%s, %s, 0, 0},\n", d->attr[i].name, words[d->attr[i].type],
        d->attr[i].required ? "true" : "false");
  PUT("    {NULL, HONE_ATTR_NONE, false, 0, 0}};\n\n");
  PUT("%s_attrs %s_attrs_of(const hone_node *node) {\n  %s_attrs a;\n  memset(&a, 0, sizeof a);\n  "
      "(void)node;\n",
      d->stem, d->stem, d->stem);
  for (uint32_t i = 0; i < d->n_attrs; i++) {
    const op_attr *a = &d->attr[i];
    if (is_list(a))
      PUT("  a.%s = %s(node, \"%s\", &a.n_%s);\n", a->name, getters[a->type], a->name, a->name);
    else
      PUT("  a.%s = %s(node, \"%s\", %s);\n", a->name, getters[a->type], a->name,
          a->otherwise                  ? a->otherwise
          : a->type == HONE_ATTR_STRING ? "\"\""
          : a->type == HONE_ATTR_INT    ? "0"
                                        : "0.0f");
  }
  PUT("  return a;\n}\n\n");
}

/* Is input i an element by element operand like input 0? */
static bool is_operand(const op_definition *d, uint32_t i) {
  for (uint32_t k = 0; k < d->n_in; k++)
    if (d->in[k].scale && (op_scale_of(&d->in[k]) == (int)i || op_zero_of(&d->in[k]) == (int)i)) return false;
  for (uint32_t k = 0; k < d->n_out; k++)
    if (d->out[k].scale && (op_scale_of(&d->out[k]) == (int)i || op_zero_of(&d->out[k]) == (int)i))
      return false;
  return true;
}

/* A reference that goes from element to element would else read behind the smaller ones. */
static void put_same_shape(op_text *out) {
  PUT("static bool same_shape(const hone_infer *io, uint32_t i, hone_error *error) {\n"
      "  const hone_tensor_desc *x = io->input[0], *z = i < io->n_inputs ? io->input[i] : NULL;\n"
      "  if (!x || !z || x->rank < 0 || z->rank < 0) return true;\n"
      "  bool same = x->rank == z->rank;\n"
      "  for (int32_t k = 0; same && k < x->rank; k++)\n"
      "    same = x->dim[k] < 0 || z->dim[k] < 0 || x->dim[k] == z->dim[k];\n"
      "  if (!same && error) {\n"
      "    error->status = HONE_ERROR_INPUT;\n"
      "    strcpy(error->what, \"its operands have several shapes; an elementwise operator takes one\");\n"
      "  }\n"
      "  return same;\n"
      "}\n\n");
}

static void put_infer(const op_definition *d, op_text *out) {
  bool broadcast = false, function = false, several = false;
  for (uint32_t i = 1; i < d->n_in; i++) several = several || is_operand(d, i);
  for (uint32_t i = 0; i < d->n_out; i++) {
    broadcast = broadcast || d->out[i].shape == OP_SHAPE_BROADCAST;
    function = function || d->out[i].shape == OP_SHAPE_FUNCTION;
  }
  if (broadcast)
    PUT("/* The dimensions of all inputs together, aligned at the last one; 1 gives way. */\n"
        "static hone_status broadcast(const hone_infer *io, hone_tensor_desc *y, hone_error *error) {\n"
        "  int32_t rank = 0;\n"
        "  for (uint32_t i = 0; i < io->n_inputs; i++) {\n"
        "    if (!io->input[i]) continue;\n"
        "    if (io->input[i]->rank < 0) { y->rank = -1; return HONE_OK; }\n"
        "    if (io->input[i]->rank > rank) rank = io->input[i]->rank;\n"
        "  }\n"
        "  y->rank = rank;\n"
        "  for (int32_t k = 0; k < rank; k++) {\n"
        "    int64_t dim = 1;\n"
        "    for (uint32_t i = 0; i < io->n_inputs; i++) {\n"
        "      const hone_tensor_desc *x = io->input[i];\n"
        "      const int32_t at = x ? k - (rank - x->rank) : -1;\n"
        "      if (at < 0 || x->dim[at] == 1 || x->dim[at] == dim) continue;\n"
        "      if (dim > 1 && x->dim[at] >= 0) {\n"
        "        if (error) {\n"
        "          error->status = HONE_ERROR_INPUT;\n"
        "          strcpy(error->what, \"the inputs' dimensions do not go together\");\n"
        "        }\n"
        "        return HONE_ERROR_INPUT;\n"
        "      }\n"
        "      if (dim == 1 || x->dim[at] >= 0) dim = x->dim[at];\n"
        "    }\n"
        "    y->dim[k] = dim;\n"
        "  }\n"
        "  return HONE_OK;\n"
        "}\n\n");
  several = several && d->kind == OP_ELEMENTWISE && !broadcast && !function;
  if (several) put_same_shape(out);
  PUT("static hone_status infer(const hone_infer *io, hone_error *error) {\n  (void)error;\n");
  for (uint32_t i = 1; i < d->n_in && several; i++)
    if (is_operand(d, i)) PUT("  if (!same_shape(io, %u, error)) return HONE_ERROR_INPUT;\n", i);
  op_codes_infer(d, out);
  for (uint32_t i = 0; i < d->n_out; i++) {
    const uint32_t of = d->out[i].shape == OP_SHAPE_OF ? d->out[i].of : 0;
    PUT("  if (io->n_outputs > %u && io->output[%u] && io->n_inputs > %u && io->input[%u]) *io->output[%u] = "
        "*io->input[%u];\n",
        i, i, of, of, i, of);
    if (d->out[i].types && !(d->out[i].types & (d->out[i].types - 1))) {
      int dtype = 0;
      while (!(d->out[i].types >> dtype & 1)) dtype++;
      PUT("  if (io->n_outputs > %u && io->output[%u]) io->output[%u]->dtype = (hone_dtype)%d; /* %s */\n", i,
          i, i, dtype, hone_dtype_name((hone_dtype)dtype));
    } else
      PUT("  if (io->n_outputs > %u && io->output[%u]) io->output[%u]->dtype = io->input[0]->dtype;\n", i, i,
          i);
    if (d->out[i].zero)
      PUT("  if (io->n_outputs > %u && io->output[%u] && given(io, %d)) io->output[%u]->dtype = given(io, "
          "%d)->dtype;\n",
          i, i, op_zero_of(&d->out[i]), i, op_zero_of(&d->out[i]));
    if (d->out[i].shape == OP_SHAPE_BROADCAST)
      PUT("  if (io->n_outputs > %u && io->output[%u] && broadcast(io, io->output[%u], error) != HONE_OK) "
          "return HONE_ERROR_INPUT;\n",
          i, i, i);
  }
  if (function)
    PUT("  const %s_attrs a = %s_attrs_of(io->node);\n  return %s_shape(&a, io, error);\n}\n\n", d->stem,
        d->stem, d->stem);
  else
    PUT("  return HONE_OK;\n}\n\n");
}

static void put_reference(const op_definition *d, op_text *out) {
  PUT("static hone_status reference(hone_call *call, hone_error *error) {\n"
      "  hone_array in[%u], result[%u];\n"
      "  const %s_attrs a = %s_attrs_of(call->node);\n"
      "  hone_status status = hone_widen(call, in, %u, error);\n"
      "  if (status == HONE_OK) status = hone_room(call, result, %u, error);\n"
      "  if (status != HONE_OK) return status;\n",
      d->n_in, d->n_out, d->stem, d->stem, d->n_in, d->n_out);
  for (uint32_t i = 0; i < d->n_in; i++)
    if (d->in[i].scale)
      PUT("  hone_decode(call, in, %u, %d, %d);\n", i, op_scale_of(&d->in[i]), op_zero_of(&d->in[i]));
  PUT("  %s_ref(&a, in, result);\n", d->stem);
  for (uint32_t i = 0; i < d->n_out; i++)
    if (d->out[i].scale)
      PUT("  hone_encode(call, in, result, %u, %d, %d);\n", i, op_scale_of(&d->out[i]),
          op_zero_of(&d->out[i]));
  PUT("  hone_narrow(call, result, %u);\n  return HONE_OK;\n}\n\n", d->n_out);
}

/* What elementwise kernels take: all of one shape, in one dense order. */
static void put_alike(const op_definition *d, op_text *out) {
  if (op_has_codes(d)) {
    op_codes_alike(d, out);
    return;
  }
  PUT("/* All operands there, f32 unless narrow, of one shape, in one order without gaps. */\n"
      "static bool alike(const hone_step *s, uint32_t types, hone_reason *why) {\n"
      "  const hone_tensor_desc *y = &s->output[0].desc;\n"
      "  if (s->n_epilogue) return hone_refuse(why, \"it takes no epilogue\");\n"
      "  if (!(types >> y->dtype & 1)) return hone_refuse(why, \"not of this type\");\n"
      "  if (hone_desc_bytes(y) != hone_desc_count(y) * (int64_t)hone_dtype_size(y->dtype))\n"
      "    return hone_refuse(why, \"elements with gaps between them\");\n"
      "  for (uint32_t i = 0; i < %u; i++) {\n"
      "    const hone_tensor_desc *x = &s->input[i].desc;\n"
      "    if (i >= s->n_inputs || x->dtype != y->dtype) return hone_refuse(why, \"operands of several "
      "types\");\n"
      "    if (!hone_desc_same_dims(x, y)) return hone_refuse(why, \"operands of several shapes\");\n"
      "    if (x->layout != y->layout || x->channel_pitch != y->channel_pitch || x->layout == "
      "HONE_LAYOUT_STRIDED)\n"
      "      return hone_refuse(why, \"operands in several orders\");\n"
      "  }\n"
      "  return true;\n"
      "}\n\n"
      "static double cost(const hone_step *s, const hone_machine *m) {\n"
      "  return hone_memory_seconds(m, hone_step_bytes(s));\n"
      "}\n\n",
      d->n_in);
}

/* The name of a kernel's tier and tile: "avx2", "avx2_64". */
static void tier_name(const op_definition *d, const op_tier *t, uint32_t tile, char buf[64]) {
  if (d->n_tiles)
    snprintf(buf, 64, "%s_%d", t->name, d->tile[tile]);
  else
    snprintf(buf, 64, "%s", t->name);
}

static void put_elementwise_run(const op_definition *d, const char *tier, op_text *out) {
  const bool codes = op_has_codes(d);
  if (codes)
    op_codes_piece(d, tier, out);
  else {
    PUT("static void piece_%s(void *arg, int64_t task, uint32_t thread) {\n"
        "  const job *j = (const job *)arg;\n"
        "  const int64_t from = task * PIECE, left = j->n - from, n = left < PIECE ? left : PIECE;\n"
        "  (void)thread;\n"
        "  %s_%s(&j->a",
        tier, d->stem, tier);
    for (uint32_t i = 0; i < d->n_in; i++) PUT(", (const float *)j->run->in[%u] + from", i);
    PUT(", (float *)j->run->out[0] + from, n);\n}\n\n");
  }
  PUT("static hone_status run_%s(const hone_step_run *r, hone_error *error) {\n"
      "  job j = {r, %s_attrs_of(r->step->node), hone_desc_count(&r->step->output[0].desc)",
      tier, d->stem);
  if (codes) PUT(", %s_codes_of(r)", d->stem);
  PUT("};\n  (void)error;\n"
      "  if (j.n) r->parallel(r->pool, (j.n + PIECE - 1) / PIECE, piece_%s, &j);\n"
      "  return HONE_OK;\n}\n\n",
      tier);
}

static void put_anchor(const op_definition *d, op_text *out) { PUT("\"%s.%s\"", d->domain, d->op); }

static void put_tactic(const op_definition *d, const char *name, const char *device, const char *accepts,
                       const char *run, op_text *out) {
  PUT("static const hone_tactic_desc tactic_%s = {HONE_DESC_HEAD(hone_tactic_desc), .name = \"%s_%s\", "
      ".device = "
      "\"%s\", .anchor = ",
      name, d->stem, name, device);
  put_anchor(d, out);
  PUT(", .version = 1, .accepts = %s, .cost = cost, .run = %s%s%s};\n\n", accepts, run,
      d->functions & OP_HAS_NEED ? ", .need = need" : "",
      d->functions & OP_HAS_PREPACK ? ", .prepack = prepack" : "");
}

static void put_cpu(const op_definition *d, op_text *out) {
  if (d->kind == OP_ELEMENTWISE)
    PUT("enum { PIECE = 16384 }; /* elements of a task */\n\n"
        "typedef struct job {\n  const hone_step_run *run;\n  %s_attrs a;\n  int64_t n;\n%s%s%s} job;\n\n",
        d->stem, op_has_codes(d) ? "  " : "", op_has_codes(d) ? d->stem : "",
        op_has_codes(d) ? "_codes c;\n" : "");
  for (int t = 0; t < OP_TIERS; t++)
    for (uint32_t k = 0; k < (d->n_tiles ? d->n_tiles : 1); k++) {
      char tier[64], accepts[80], run[80];
      tier_name(d, &op_tiers[t], k, tier);
      PUT("%s %s_%s", kernel_result(d), d->stem, tier);
      kernel_arguments(d, out);
      PUT(";\n\n");
      snprintf(accepts, sizeof accepts, "accepts_%s", tier);
      snprintf(run, sizeof run, "run_%s", tier);
      PUT("static bool %s(const hone_step *s, const hone_machine *m, hone_reason *why) {\n"
          "  if ((m->isa & %s) != %s) return hone_refuse(why, \"the processor has no %s\");\n",
          accepts, op_tiers[t].isa, op_tiers[t].isa, op_tiers[t].name);
      if (d->kind == OP_ELEMENTWISE) {
        PUT("  return alike(s, HONE_TYPES(HONE_DTYPE_F32)%s, why);\n}\n\n", op_has_codes(d) ? ", true" : "");
        put_elementwise_run(d, tier, out);
      } else {
        PUT("  return %s_accepts(s, m, why);\n}\n\n", d->stem);
        PUT("static hone_status run_%s(const hone_step_run *r, hone_error *error) {\n"
            "  const %s_attrs a = %s_attrs_of(r->step->node);\n  return %s_%s(&a, r, error);\n}\n\n",
            tier, d->stem, d->stem, d->stem, tier);
      }
      put_tactic(d, tier, "cpu", accepts, run, out);
    }
}

/* A member with a text, a line each. */
static void put_member(const char *name, const char *text, op_text *out) {
  PUT(",\n    .%s =", name);
  for (const char *line = text; *line;) {
    const size_t n = strcspn(line, "\n");
    PUT("\n    \"");
    for (size_t k = 0; k < n; k++) {
      if (line[k] == '"' || line[k] == '\\') op_put_char(out, '\\');
      op_put_char(out, (char)((unsigned char)line[k] < 32 ? ' ' : line[k]));
    }
    PUT("%s\"", line[n] ? "\\n" : "");
    line += n + (line[n] == '\n');
  }
}

static void put_patterns(const op_definition *d, op_text *out) {
  for (uint32_t i = 0; i < d->n_patterns; i++) {
    const op_pattern *p = &d->pattern[i];
    PUT("static const hone_pattern_desc pattern_%u = {HONE_DESC_HEAD(hone_pattern_desc), .name = ", i);
    put_anchor(d, out);
    put_member("text", p->text, out);
    PUT(",\n    .inputs = \"");
    put_words(p->inputs, out);
    PUT("\"");
    if (p->settings) put_member("settings", p->settings, out);
    PUT("};\n\n");
  }
}

static uint32_t types_of(const op_definition *d) {
  uint32_t types = d->in[0].types;
  return types;
}

static void put_text(const char *text, op_text *out) { /* a literal of any length, a line each, and its end */
  while (*text) {
    const size_t n = strcspn(text, "\n");
    PUT("\n    \"");
    for (size_t k = 0; k < n; k++) {
      const unsigned char c = (unsigned char)text[k];
      if (c == '"' || c == '\\')
        PUT("\\%c", c);
      else if (c == '?')
        PUT("\\?");
      else if (c < 32 || c > 126)
        PUT("\\%03o", c);
      else
        op_put_char(out, (char)(c));
    }
    PUT("\\n\"");
    text += n + (text[n] == '\n');
  }
  PUT(";\n\n");
}

/* The struct that elementwise kernels take; both sides read it from here. */
static void put_cuda_args(const op_definition *d, const char *newline, const char *quote, op_text *out) {
  PUT("%stypedef struct %s_args {%s", quote, d->stem, newline);
  PUT("%s  unsigned long long n;%s", quote, newline);
  for (uint32_t i = 0; i < d->n_in; i++)
    if (!d->in[i].measure) PUT("%s  const void *%s;%s", quote, d->in[i].name, newline);
  PUT("%s  void *%s;%s", quote, d->out[0].name, newline);
  for (uint32_t i = 0; i < d->n_attrs; i++)
    if (d->attr[i].type == HONE_ATTR_INT || d->attr[i].type == HONE_ATTR_FLOAT)
      PUT("%s  %s %s;%s", quote, d->attr[i].type == HONE_ATTR_INT ? "long long" : "float", d->attr[i].name,
          newline);
  PUT("%s} %s_args;%s", quote, d->stem, newline);
}

static void put_cuda(const op_definition *d, const op_parts *parts, const char *text, op_text *out) {
  static const struct {
    hone_dtype dtype;
    const char *word, *name;
  } kinds[] = {
      {HONE_DTYPE_F32, "f32", "F32"}, {HONE_DTYPE_F16, "f16", "F16"}, {HONE_DTYPE_BF16, "bf16", "BF16"}};
  if (d->kind == OP_ELEMENTWISE) {
    PUT("static const char cuda_text[] =");
    put_text(text, out);
    put_cuda_args(d, "\n", "", out);
    PUT("\n");
  }
  for (uint32_t k = 0; k < (d->n_tiles ? d->n_tiles : 1); k++) {
    char name[64], accepts[80], run[80];
    snprintf(name, sizeof name, d->n_tiles ? "cuda_%d" : "cuda", d->n_tiles ? d->tile[k] : 0);
    snprintf(accepts, sizeof accepts, "accepts_%s", name);
    snprintf(run, sizeof run, "run_%s", name);
    PUT("/* The text of the kernels, and what stands before it. */\n"
        "static const char text_%s[] =\n    \"#include \\\"hone.cuh\\\"\\n\"\n",
        name);
    if (d->n_tiles) PUT("    \"#define HONE_TILE %d\\n\"\n", d->tile[k]);
    if (d->kind == OP_ELEMENTWISE) put_cuda_args(d, "\\n\"\n", "    \"", out);
    PUT("    \"#line 1 \\\"%s_cuda.cu\\\"\\n\"", d->stem);
    if (d->kind == OP_GENERAL)
      put_text(text, out);
    else
      PUT(";\n\n");
    if (d->kind == OP_ELEMENTWISE) {
      PUT("static bool %s(const hone_step *s, const hone_machine *m, hone_reason *why) {\n  (void)m;\n  "
          "return alike(s, 0",
          accepts);
      for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (types_of(d) >> kinds[i].dtype & 1) PUT(" | HONE_TYPES(HONE_DTYPE_%s)", kinds[i].name);
      PUT("%s, why);\n}\n\n", op_has_codes(d) ? ", false" : "");
      PUT("static hone_status %s(const hone_step_run *r, hone_error *error) {\n"
          "  const hone_tensor_desc *y = &r->step->output[0].desc;\n"
          "  const %s_attrs a = %s_attrs_of(r->step->node);\n"
          "  const unsigned long long n = (unsigned long long)hone_desc_count(y);\n"
          "  const %s_args args = {n",
          run, d->stem, d->stem, d->stem);
      for (uint32_t i = 0; i < d->n_in; i++)
        if (!d->in[i].measure) PUT(", r->in[%u]", i);
      PUT(", r->out[0]");
      for (uint32_t i = 0; i < d->n_attrs; i++)
        if (d->attr[i].type == HONE_ATTR_INT || d->attr[i].type == HONE_ATTR_FLOAT)
          PUT(", a.%s", d->attr[i].name);
      PUT("};\n"
          "  (void)a;\n"
          "  /* a thread does 16 bytes */\n"
          "  const unsigned long long blocks = (n * hone_dtype_size(y->dtype) + 16 * 256 - 1) / (16 * 256);\n"
          "  const hone_cuda_kernel k = {HONE_DESC_HEAD(hone_cuda_kernel), .head = text_%s, .text = "
          "cuda_text,\n"
          "                              .entry = y->dtype == HONE_DTYPE_F16    ? \"%s_f16\"\n"
          "                                       : y->dtype == HONE_DTYPE_BF16 ? \"%s_bf16\"\n"
          "                                                                     : \"%s_f32\",\n"
          "                              .grid = {(uint32_t)blocks, 1, 1}, .threads = 256};\n"
          "  if (blocks > 0x7fffffffu) {\n"
          "    if (error) error->status = HONE_ERROR_UNSUPPORTED;\n"
          "    return HONE_ERROR_UNSUPPORTED;\n"
          "  }\n"
          "  return n ? hone_cuda_launch(r, &k, &args, sizeof args, error) : HONE_OK;\n}\n\n",
          name, d->stem, d->stem, d->stem);
    } else {
      PUT("static bool %s(const hone_step *s, const hone_machine *m, hone_reason *why) {\n"
          "  return %s_accepts(s, m, why);\n}\n\n"
          "static hone_status %s(const hone_step_run *r, hone_error *error) {\n"
          "  const %s_attrs a = %s_attrs_of(r->step->node);\n  return %s_cuda(&a, r, text_%s, error);\n}\n\n",
          accepts, d->stem, run, d->stem, d->stem, d->stem, name);
    }
    put_tactic(d, name, "cuda", accepts, run, out);
  }
  (void)parts;
}

/* Calls of the functions that the definition names, with the attributes. */
static void put_calls(const op_definition *d, bool tactics, op_text *out) {
  const char *n = d->stem;
  if (tactics && d->functions & OP_HAS_NEED)
    PUT("static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *need, "
        "hone_error "
        "*error) {\n  const %s_attrs a = %s_attrs_of(s->node);\n  return %s_need(&a, s, m, need, "
        "error);\n}\n\n",
        n, n, n);
  if (tactics && d->functions & OP_HAS_PREPACK)
    PUT("static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error "
        "*error) {\n"
        "  const %s_attrs a = %s_attrs_of(s->node);\n  return %s_prepack(&a, s, m, blob, error);\n}\n\n",
        n, n, n);
  if (d->functions & OP_HAS_COUNT)
    PUT("static void count(const hone_infer *io, hone_cost *cost) {\n"
        "  const %s_attrs a = %s_attrs_of(io->node);\n  %s_count(&a, io, cost);\n}\n\n",
        n, n, n);
}

static void put_list(const op_definition *d, const op_parts *parts, op_text *out) {
  uint32_t n = 0;
  char tier[64];
  const uint32_t tiles = d->n_tiles ? d->n_tiles : 1;
  const bool cuda = parts->cuda && (d->kind == OP_ELEMENTWISE || parts->launch);
  PUT("static const hone_op_desc *const ops[] = {&op};\n");
  if (parts->cpu || cuda) {
    PUT("static const hone_tactic_desc *const tactics[] = {");
    for (int t = 0; parts->cpu && t < OP_TIERS; t++)
      for (uint32_t k = 0; k < tiles; k++, n++) {
        tier_name(d, &op_tiers[t], k, tier);
        PUT("%s&tactic_%s", n ? ", " : "", tier);
      }
    for (uint32_t k = 0; cuda && k < tiles; k++, n++) {
      if (d->n_tiles)
        PUT("%s&tactic_cuda_%d", n ? ", " : "", d->tile[k]);
      else
        PUT("%s&tactic_cuda", n ? ", " : "");
    }
    PUT("};\n");
  }
  if (d->n_patterns) {
    PUT("static const hone_pattern_desc *const patterns[] = {");
    for (uint32_t i = 0; i < d->n_patterns; i++) PUT("%s&pattern_%u", i ? ", " : "", i);
    PUT("};\n");
  }
  PUT("\nstatic const hone_plugin plugin = {HONE_DESC_HEAD(hone_plugin), .name = \"%s\", .version = \"",
      d->stem);
  put_words(d->version, out);
  PUT("\", .about = \"");
  for (const char *p = d->about; *p; p++) {
    if (*p == '"' || *p == '\\') op_put_char(out, (char)('\\'));
    op_put_char(out, (char)((unsigned char)*p < 32 ? ' ' : *p));
  }
  PUT("\",\n    .n_ops = 1, .op = ops");
  if (n) PUT(", .n_tactics = %u, .tactic = tactics", n);
  if (d->n_patterns) PUT(", .n_patterns = %u, .pattern = patterns", d->n_patterns);
  PUT("};\n\nconst hone_plugin *hone_plugin_entry(uint32_t abi) { return abi == HONE_PLUGIN_ABI ? &plugin : "
      "NULL; }\n");
}

/* ", .example = "2x8;8"", as far as the first inputs have one. */
static void example_of(const op_definition *d, char *buf, size_t size) {
  size_t n = 0;
  buf[0] = 0;
  for (uint32_t i = 0; i < d->n_in && d->in[i].example && n < size; i++)
    n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? ";" : ", .example = \"", d->in[i].example);
  if (n && n < size) snprintf(buf + n, size - n, "\"");
}

void op_generate_source(const op_definition *d, const op_parts *parts, const char *cuda_text, op_text *out) {
  const bool cuda = parts->cuda && cuda_text && (d->kind == OP_ELEMENTWISE || parts->launch);
  uint32_t least = 0;
  for (uint32_t i = 0; i < d->n_in; i++)
    if (!d->in[i].optional) least = i + 1;
  PUT("/* Made from %s.json by `hone op build`: what is changed here is lost. */\n#include \"%s_op.h\"\n%s\n",
      d->stem, d->stem, cuda ? "#include <hone/cuda.h>\n" : "");
  put_attrs(d, out);
  op_codes_functions(d, out);
  put_infer(d, out);
  put_reference(d, out);
  if (d->kind == OP_ELEMENTWISE && (parts->cpu || cuda)) put_alike(d, out);
  if (d->kind == OP_GENERAL && (parts->cpu || cuda))
    PUT("bool %s_accepts(const hone_step *s, const hone_machine *m, hone_reason *why);\n"
        "double %s_cost(const hone_step *s, const hone_machine *m);\n"
        "static double cost(const hone_step *s, const hone_machine *m) { return %s_cost(s, m); }\n\n",
        d->stem, d->stem, d->stem);
  put_calls(d, parts->cpu || cuda, out);
  if (parts->cpu) put_cpu(d, out);
  if (cuda) put_cuda(d, parts, cuda_text, out);
  put_patterns(d, out);
  char examples[OP_OPERANDS * 200];
  example_of(d, examples, sizeof examples);
  PUT("static const hone_op_desc op = {HONE_DESC_HEAD(hone_op_desc), .domain = \"%s\", .op_type = \"%s\", "
      ".since = %d,\n"
      "    .min_inputs = %u, .max_inputs = %u, .min_outputs = %u, .max_outputs = %u, .types = 0x%xu, .attrs "
      "= attrs,\n"
      "    .infer = infer, .reference = reference%s%s%s%s};\n",
      d->domain, d->op, d->since, least, d->n_in, d->n_out, d->n_out, d->in[0].types,
      d->kind == OP_ELEMENTWISE && !op_has_codes(d) ? ", .flags = HONE_OP_POINTWISE" : "",
      op_has_codes(d) ? ", .ports = ports" : "", d->functions & OP_HAS_COUNT ? ", .cost = count" : "",
      examples);
  put_list(d, parts, out);
}
