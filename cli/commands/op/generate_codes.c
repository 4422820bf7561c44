#include "cli/commands/op/generate_codes.h"

#define PUT(...) op_put(out, __VA_ARGS__)

void op_codes_struct(const op_definition *d, op_text *out) {
  if (!op_has_codes(d)) return;
  PUT("/* What the 8-bit codes of a step mean (hone/kernel.h): scale 1 and zero 0 of what is no codes. */\n"
      "typedef struct %s_codes {\n",
      d->stem);
  for (uint32_t i = 0; i < d->n_in; i++)
    if (d->in[i].scale) PUT("  hone_affine %s;\n", d->in[i].name);
  for (uint32_t i = 0; i < d->n_out; i++)
    if (d->out[i].scale) PUT("  hone_affine %s;\n", d->out[i].name);
  PUT("} %s_codes;\n\n%s_codes %s_codes_of(const hone_step_run *run);\n\n", d->stem, d->stem, d->stem);
}

void op_codes_functions(const op_definition *d, op_text *out) {
  if (!op_has_codes(d)) return;
  PUT("%s_codes %s_codes_of(const hone_step_run *run) {\n  %s_codes c;\n", d->stem, d->stem, d->stem);
  for (uint32_t i = 0; i < d->n_in; i++)
    if (d->in[i].scale)
      PUT("  c.%s = hone_affine_of(run, &run->step->input[%u].desc, %d, %d);\n", d->in[i].name, i,
          op_scale_of(&d->in[i]), op_zero_of(&d->in[i]));
  for (uint32_t i = 0; i < d->n_out; i++)
    if (d->out[i].scale)
      PUT("  c.%s = hone_affine_of(run, &run->step->output[%u].desc, %d, %d);\n", d->out[i].name, i,
          op_scale_of(&d->out[i]), op_zero_of(&d->out[i]));
  PUT("  return c;\n}\n\n");
  PUT("static hone_status refuse(hone_error *error, const char *what) {\n"
      "  if (error) {\n    error->status = HONE_ERROR_INPUT;\n    strcpy(error->what, what);\n  }\n"
      "  return HONE_ERROR_INPUT;\n}\n\n"
      "static const hone_tensor_desc *given(const hone_infer *io, uint32_t i) {\n"
      "  return i < io->n_inputs ? io->input[i] : NULL;\n}\n\n");
  /* Of results hone knows the first alone. */
  PUT("static const hone_codes_port ports[] = {");
  for (uint32_t i = 0; i < d->n_in; i++)
    if (d->in[i].scale)
      PUT("{%u, %d, %d, HONE_CODES_AXIS_NONE}, ", i, op_scale_of(&d->in[i]),
          d->in[i].zero ? op_zero_of(&d->in[i]) : 254);
  if (d->out[0].scale)
    PUT("{HONE_CODES_RESULT, %d, %d, HONE_CODES_AXIS_NONE}, ", op_scale_of(&d->out[0]),
        d->out[0].zero ? op_zero_of(&d->out[0]) : 254);
  PUT("{0, 0, 0, 0}};\n\n");
}

/* Scales and zero points are single numbers, and zero points have the type of their codes. */
void op_codes_infer(const op_definition *d, op_text *out) {
  for (uint32_t i = 0; i < d->n_in; i++) {
    const op_operand *x = &d->in[i];
    if (x->measure)
      PUT("  if (given(io, %u) && (given(io, %u)->rank > 1 || (given(io, %u)->rank == 1 && given(io, "
          "%u)->dim[0] != 1)))\n    return refuse(error, \"'%s' is no single number\");\n",
          i, i, i, i, x->name);
    if (x->zero)
      PUT("  if (given(io, %u) && given(io, %d) && given(io, %u)->dtype != given(io, %d)->dtype)\n"
          "    return refuse(error, \"'%s' has another type than '%s'\");\n",
          i, op_zero_of(x), i, op_zero_of(x), d->in[op_zero_of(x)].name, x->name);
    if (!x->measure && x->scale)
      PUT("  if (given(io, %u) && !hone_dtype_is_float(given(io, %u)->dtype) && !given(io, %d))\n"
          "    return refuse(error, \"the codes of '%s' have no scale\");\n",
          i, i, op_scale_of(x), x->name);
    if (x->measure)
      PUT("  if (given(io, %u) && !(0x%xu >> given(io, %u)->dtype & 1)) return refuse(error, \"'%s' has "
          "another "
          "type\");\n",
          i, x->types, i, x->name);
  }
}

/* The same where some operands may be codes: those with a scale. */
void op_codes_alike(const op_definition *d, op_text *out) {
  PUT("static bool is_code(const hone_step *s, hone_dtype d, int scale) {\n"
      "  return (d == HONE_DTYPE_I8 || d == HONE_DTYPE_U8) && scale >= 0 && (uint32_t)scale < s->n_inputs "
      "&&\n"
      "         s->input[scale].desc.dtype == HONE_DTYPE_F32;\n}\n\n"
      "/* All operands there, codes, f32 or all of one narrow type, of one shape, in one order without gaps. "
      "*/\n"
      "static bool alike(const hone_step *s, uint32_t types, bool codes, hone_reason *why) {\n"
      "  static const struct {\n    unsigned char input;\n    short scale;\n  } operands[] = {");
  for (uint32_t i = 0; i < d->n_in; i++)
    if (!d->in[i].measure) PUT("{%u, %d}, ", i, op_scale_of(&d->in[i]));
  PUT("};\n"
      "  const hone_tensor_desc *y = &s->output[0].desc;\n"
      "  if (s->n_epilogue) return hone_refuse(why, \"it takes no epilogue\");\n"
      "  if (!(types >> y->dtype & 1) && !(codes && is_code(s, y->dtype, %d))) return hone_refuse(why, \"not "
      "of "
      "this type\");\n"
      "  if (hone_desc_bytes(y) != hone_desc_count(y) * (int64_t)hone_dtype_size(y->dtype))\n"
      "    return hone_refuse(why, \"elements with gaps between them\");\n"
      "  for (uint32_t i = 0; i < sizeof operands / sizeof *operands; i++) {\n"
      "    const hone_tensor_desc *x = &s->input[operands[i].input].desc;\n"
      "    if (operands[i].input >= s->n_inputs) return hone_refuse(why, \"an operand is left out\");\n"
      "    if (codes ? x->dtype != HONE_DTYPE_F32 && !is_code(s, x->dtype, operands[i].scale) : x->dtype != "
      "y->dtype)\n"
      "      return hone_refuse(why, \"operands of several types\");\n"
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
      op_scale_of(&d->out[0]));
}

/* One argument of a kernel: as it lies, or a piece of it in room of its own. */
void op_codes_piece(const op_definition *d, const char *tier, op_text *out) {
  PUT("static void piece_%s(void *arg, int64_t task, uint32_t thread) {\n"
      "  enum { CHUNK = 1024 };\n"
      "  const job *j = (const job *)arg;\n"
      "  const hone_step *s = j->run->step;\n"
      "  const hone_dtype type = s->output[0].desc.dtype;\n"
      "  const int64_t end = (task + 1) * PIECE < j->n ? (task + 1) * PIECE : j->n;\n"
      "  float room[%u][CHUNK];\n"
      "  (void)thread;\n"
      "  for (int64_t at = task * PIECE; at < end; at += CHUNK) {\n"
      "    const int64_t n = end - at < CHUNK ? end - at : CHUNK;\n"
      "    float *y = type == HONE_DTYPE_F32 ? (float *)j->run->out[0] + at : room[0];\n"
      "    %s_%s(&j->a",
      tier, d->n_in + 1, d->stem, tier);
  for (uint32_t i = 0; i < d->n_in; i++) {
    const op_operand *x = &d->in[i];
    if (x->measure) continue;
    if (x->scale)
      PUT(",\n        hone_as_floats(j->run->in[%u], s->input[%u].desc.dtype, at, n, j->c.%s, room[%u])", i,
          i, x->name, i + 1);
    else
      PUT(",\n        (const float *)j->run->in[%u] + at", i);
  }
  PUT(", y, n);\n");
  if (d->out[0].scale)
    PUT("    if (type != HONE_DTYPE_F32) hone_as_codes(y, n, j->c.%s, type, j->run->out[0], at);\n",
        d->out[0].name);
  PUT("  }\n}\n\n");
}
