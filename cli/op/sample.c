/* See sample.h. */
#include "cli/op/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORK_OF_A_CASE 1e6
enum { PAGE = 4096 };

void op_name(const hone_op_desc *op, char *buf, size_t size) {
  snprintf(buf, size, "%s%s%s", op->domain, *op->domain ? "." : "", op->op_type);
}

/* Appends; what does not fit is cut. */
static void add(char *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char *buf, const char *format, ...) {
  const size_t n = strlen(buf);
  va_list args;
  va_start(args, format);
  vsnprintf(buf + n, OP_TEXT - n, format, args);
  va_end(args);
}

/* ------------------------------------------------------------------ attributes */

static void add_float(op_random *r, char *buf) {
  static const char *const some[] = {"0.0", "1.0", "-1.0", "0.5", "2.5", "0.001", "-3.25", "7.0"};
  add(buf, "%s", some[op_below(r, sizeof some / sizeof *some)]);
}

/* False: values of this type cannot be guessed. */
static bool add_attr(op_random *r, const hone_attr_desc *a, char *buf) {
  if (a->type != HONE_ATTR_FLOAT && a->type != HONE_ATTR_INT && a->type != HONE_ATTR_INTS &&
      a->type != HONE_ATTR_FLOATS)
    return false;
  const bool list = a->type == HONE_ATTR_INTS || a->type == HONE_ATTR_FLOATS;
  const bool real = a->type == HONE_ATTR_FLOAT || a->type == HONE_ATTR_FLOATS;
  add(buf, "%s%s=%s", *buf ? ", " : "", a->name, list ? "[" : "");
  for (uint32_t i = 0, n = list ? 1 + op_below(r, 4) : 1; i < n; i++) {
    if (i) add(buf, ", ");
    if (real)
      add_float(r, buf);
    else
      add(buf, "%d", (int)op_below(r, 5) - 1);
  }
  if (list) add(buf, "]");
  return true;
}

/* Half of the samples have the defaults alone. */
static void draw_attrs(op_random *r, const op_wish *w, char *buf) {
  char inner[OP_TEXT] = "";
  const bool some = !w->exact && op_below(r, 2);
  for (const hone_attr_desc *a = w->op->attrs; a && a->name; a++) {
    if (a->until && a->until < w->op->since) continue;
    if (a->required || (some && op_below(r, 2))) (void)add_attr(r, a, inner);
  }
  buf[0] = 0;
  if (*inner) snprintf(buf, OP_TEXT, "{%.*s}", OP_TEXT - 4, inner);
}

/* ------------------------------------------------------------------ codes */

op_measure op_measure_of(const hone_op_desc *op, uint32_t input) {
  for (const hone_codes_port *p = op->ports; p && p->scale; p++) {
    if (p->scale == input) return OP_SCALE;
    if (p->zero == input) return OP_ZERO;
  }
  return OP_NO_MEASURE;
}

bool op_makes_codes(const op_sample *s) {
  const hone_dtype d = s->out[0].dtype;
  for (const hone_codes_port *p = s->op->ports; p && p->scale; p++)
    if (p->tensor == HONE_CODES_RESULT) return d == HONE_DTYPE_I8 || d == HONE_DTYPE_U8;
  return false;
}

static bool is_code(hone_dtype d) { return d == HONE_DTYPE_I8 || d == HONE_DTYPE_U8; }

/* A scale between 1/128 and 1/2, or a zero point anywhere in its type. */
static void fill_measure(op_random *r, op_measure m, const hone_tensor *t) {
  if (m == OP_SCALE)
    *(float *)t->data = (float)(1 + op_below(r, 63)) / 128;
  else
    *(uint8_t *)t->data = (uint8_t)(op_below(r, 3) ? op_below(r, 256) : 0);
}

/* ------------------------------------------------------------------ inputs and outputs */

static void draw_arity(op_random *r, const op_wish *w, op_sample *s) {
  const hone_op_desc *op = w->op;
  const uint32_t many = op->min_inputs > 3 ? op->min_inputs : 3;
  const uint32_t most = op->max_inputs == HONE_VARIADIC ? many : op->max_inputs;
  const uint32_t outs =
      op->max_outputs == HONE_VARIADIC ? (op->min_outputs ? op->min_outputs : 1) : op->max_outputs;
  s->n_in = most < OP_MOST ? most : OP_MOST;
  s->n_out = outs < OP_MOST ? outs : OP_MOST;
  if (!w->exact && s->n_in > op->min_inputs && !op->ports && op_below(r, 3) == 0)
    s->n_in = op->min_inputs + op_below(r, s->n_in - op->min_inputs);
  if (w->n_inputs) s->n_in = w->n_inputs < s->n_in ? w->n_inputs : s->n_in;
  if (w->exact && w->n_given >= op->min_inputs && w->n_given < s->n_in) s->n_in = w->n_given;
}

static bool refuse(hone_error *e, const char *what) {
  *e = (hone_error){.status = HONE_ERROR_UNSUPPORTED};
  snprintf(e->what, sizeof e->what, "%s", what);
  return false;
}

static bool draw_inputs(op_random *r, const op_wish *w, op_sample *s, hone_error *error) {
  op_shape shape[OP_MOST];
  if (w->given && w->exact)
    memcpy(shape, w->given, s->n_in * sizeof *shape);
  else if (w->given)
    op_shapes_vary(r, w->given, s->n_in, shape);
  else
    op_shapes_draw(r, w->scheme, s->n_in, shape);
  const bool other = !w->exact && op_below(r, 8) == 0; /* others of another type */
  for (uint32_t i = 0; i < s->n_in; i++) {
    const bool host = w->op->host_inputs >> i & 1;
    hone_dtype d = i == 0 ? w->dtype : host ? HONE_DTYPE_I64 : w->dtype;
    if (i && other) d = host ? HONE_DTYPE_F32 : HONE_DTYPE_I64;
    if (i >= w->op->min_inputs && i + 1 < s->n_in && !w->exact && op_below(r, 4) == 0 &&
        op_measure_of(w->op, i) != OP_SCALE)
      continue; /* left out */
    const op_measure measure = op_measure_of(w->op, i);
    if (measure && !is_code(w->dtype) && i >= w->op->min_inputs) continue; /* there are no codes */
    if (measure) d = measure == OP_SCALE ? HONE_DTYPE_F32 : is_code(w->dtype) ? w->dtype : HONE_DTYPE_U8;
    s->in[i].desc = hone_desc(d, measure ? 0 : shape[i].rank, shape[i].dim);
    /* Weights are smaller than what flows. */
    s->constant[i] =
        host || measure ||
        (i && (w->exact ? !hone_desc_same_dims(&s->in[i].desc, &s->in[0].desc) : op_below(r, 3) == 0));
    const int64_t n = hone_desc_count(&s->in[i].desc);
    s->elements += n < 0 ? INFINITY : (double)n;
  }
  if (s->elements > (w->most > 0 ? w->most : WORK_OF_A_CASE * 0.12))
    return refuse(error, "its inputs are too large");
  for (uint32_t i = 0; i < s->n_in; i++) {
    if (s->in[i].desc.dtype == HONE_DTYPE_NONE) continue;
    /* A page, as large tensors of plans. */
    s->in[i].data = aligned_alloc(PAGE, ((size_t)hone_desc_bytes(&s->in[i].desc) / PAGE + 1) * PAGE);
    if (!s->in[i].data) return refuse(error, "out of memory");
  }
  const hone_tensor_desc *a = &s->in[0].desc, *b = &s->in[1].desc;
  s->twins = !w->exact && s->n_in > 1 && a->dtype && a->dtype == b->dtype && hone_desc_same_dims(a, b) &&
             op_below(r, 6) == 0;
  if (s->twins) s->constant[1] = s->constant[0];
  return true;
}

/* One of the float inputs is of the wanted kind, the others are normal; of half of the samples all are. */
static void fill(op_random *r, op_sample *s, bool constants) {
  const uint32_t chosen = op_below(r, 2) ? OP_MOST : op_below(r, s->n_in ? s->n_in : 1);
  for (uint32_t i = 0; i < s->n_in; i++) {
    if (!s->in[i].data || (!constants && s->constant[i])) continue;
    const bool all = chosen == OP_MOST || chosen == i;
    const bool host = s->op->host_inputs >> i & 1;
    const op_measure measure = op_measure_of(s->op, i);
    if (measure) {
      fill_measure(r, measure, &s->in[i]);
      continue;
    }
    op_fill(r, host ? OP_SMALL : all ? s->values : OP_NORMAL, &s->in[i]);
  }
  if (s->twins && (constants || !s->constant[0]))
    memcpy(s->in[1].data, s->in[0].data, (size_t)hone_desc_bytes(&s->in[0].desc));
}

void op_sample_refill(op_random *r, op_sample *s) { fill(r, s, false); }

/* ------------------------------------------------------------------ the node */

static void add_type(char *buf, const hone_tensor_desc *d) {
  add(buf, "%s", hone_dtype_name(d->dtype));
  for (int32_t k = 0; k < d->rank; k++) add(buf, "%s%lld", k ? "x" : "[", (long long)d->dim[k]);
  if (d->rank) add(buf, "]");
}

static bool make_node(op_sample *s, hone_error *error) {
  char ports[OP_TEXT] = "", reads[OP_TEXT] = "", makes[OP_TEXT] = "", text[6 * OP_TEXT + 900];
  bool first = true;
  for (uint32_t i = 0; i < s->n_in; i++) {
    const bool there = s->in[i].desc.dtype != HONE_DTYPE_NONE;
    add(reads, there ? "%s%%x%u" : "%s_", i ? ", " : "", s->twins && i == 1 ? 0 : i);
    if (!there || (s->twins && i == 1)) continue;
    add(ports, "%s%%x%u: ", first ? "" : ", ", i);
    add_type(ports, &s->in[i].desc);
    first = false;
  }
  for (uint32_t i = 0; i < s->n_out; i++) add(makes, "%s%%y%u", i ? ", " : "", i);
  char opsets[200] = "opset 17\n", domain[140] = "";
  if (*s->op->domain) {
    snprintf(opsets, sizeof opsets, "opset 17\nopset \"%.100s\" %d\n", s->op->domain, s->op->since);
    snprintf(domain, sizeof domain, "%.130s::", s->op->domain);
  } else if (s->op->since > 17)
    snprintf(opsets, sizeof opsets, "opset %d\n", s->op->since);
  snprintf(text, sizeof text, "%sgraph g(%s) -> (%s) { %s = %s%s(%s) %s }", opsets, ports, makes, makes,
           domain, s->op->op_type, reads, s->attrs);
  if (hone_model_parse(text, strlen(text), &s->model, error) != HONE_OK) return false;
  s->node = hone_model_node(s->model, 0);
  return s->node != NULL;
}

static bool infer(op_sample *s, double most, hone_error *error) {
  const hone_tensor_desc *in[OP_MOST];
  const hone_tensor *value[OP_MOST];
  hone_tensor_desc *out[OP_MOST];
  double made = 0, read = 0;
  for (uint32_t i = 0; i < s->n_in; i++) {
    in[i] = s->in[i].desc.dtype ? &s->in[i].desc : NULL;
    value[i] = in[i] && s->constant[i] ? &s->in[i] : NULL;
    if (in[i]) read += (double)hone_desc_count(in[i]);
  }
  for (uint32_t i = 0; i < s->n_out; i++) {
    s->out[i] = (hone_tensor_desc){.rank = -1};
    out[i] = &s->out[i];
  }
  const hone_infer io = {s->node, s->n_in, s->n_out, in, value, out};
  if (s->op->infer(&io, error) != HONE_OK) return false;
  for (uint32_t i = 0; i < s->n_out; i++) {
    if (!hone_desc_known(&s->out[i]) || s->out[i].dtype == HONE_DTYPE_NONE)
      return refuse(error, "inference does not tell the shapes of its outputs");
    if (hone_desc_bytes(&s->out[i]) < 0) return refuse(error, "its outputs are too large");
    hone_desc_set_layout(&s->out[i], HONE_LAYOUT_ROW_MAJOR, 0);
    made += (double)hone_desc_count(&s->out[i]);
  }
  s->cost = (hone_cost){.flops = made, .bytes = -1};
  if (s->op->cost) s->op->cost(&io, &s->cost);
  if (s->cost.bytes < 0) {
    s->cost.bytes = 0;
    for (uint32_t i = 0; i < s->n_in; i++)
      if (in[i]) s->cost.bytes += (double)hone_desc_bytes(in[i]);
    for (uint32_t i = 0; i < s->n_out; i++) s->cost.bytes += (double)hone_desc_bytes(&s->out[i]);
  }
  const double work = s->cost.flops > read ? s->cost.flops : read;
  s->depth = made > 0 && work > made ? work / made : 1;
  return (work <= most && made <= most) || refuse(error, "it is too much work for a test");
}

static void describe(op_sample *s) {
  char one[100];
  s->text[0] = 0;
  for (uint32_t i = 0; i < s->n_in; i++) {
    const bool there = s->in[i].desc.dtype != HONE_DTYPE_NONE;
    add(s->text, "%s%s%s", i ? ", " : "", there ? hone_desc_format(&s->in[i].desc, one, sizeof one) : "none",
        there && s->constant[i] ? " constant" : "");
  }
  if (s->twins) add(s->text, " (the same value twice)");
  if (*s->attrs) add(s->text, " %s", s->attrs);
  add(s->text, ", %s", op_values_name(s->values));
}

bool op_sample_draw(op_random *r, const op_wish *w, op_sample *s, hone_error *error) {
  const double most = w->most > 0 ? w->most : WORK_OF_A_CASE;
  *s = (op_sample){.op = w->op, .values = w->values};
  *error = (hone_error){0};
  draw_arity(r, w, s);
  if (w->given && s->n_in > w->n_given) return refuse(error, "a shape is missing");
  draw_attrs(r, w, s->attrs);
  if (!draw_inputs(r, w, s, error) || !make_node(s, error)) return false;
  fill(r, s, true);
  if (!infer(s, most, error)) return false;
  for (uint32_t i = w->op->min_outputs; i < s->n_out; i++)
    if (i && !w->exact && op_below(r, 4) == 0) s->out[i] = (hone_tensor_desc){.rank = -1};
  describe(s);
  return true;
}

bool op_sample_become(op_sample *s, const char *attrs, hone_error *error) {
  const double any = 1e12;
  hone_model_release(s->model);
  s->model = NULL;
  s->node = NULL;
  snprintf(s->attrs, sizeof s->attrs, "%s", attrs);
  if (!make_node(s, error) || !infer(s, any, error)) return false;
  describe(s);
  return true;
}

/* Does the operator take exactly these shapes, with at most this work (0: a case's)? */
static bool takes(const op_wish *wish, const op_shape *given, double most) {
  op_random r = op_stream(1, "shrink");
  op_wish w = *wish;
  op_sample s;
  hone_error ignored;
  w.given = given, w.exact = true, w.most = most;
  const bool good = op_sample_draw(&r, &w, &s, &ignored);
  op_sample_free(&s);
  return good;
}

/* The largest dimension below `below`. */
static int64_t largest_dim(const op_shape *given, uint32_t n, int64_t below) {
  int64_t most = 0;
  for (uint32_t i = 0; i < n; i++)
    for (int32_t k = 0; k < given[i].rank; k++)
      if (given[i].dim[k] < below && given[i].dim[k] > most) most = given[i].dim[k];
  return most;
}

void op_sample_shrink(const op_wish *wish, op_shape *given) {
  static const int64_t small[] = {6, 16, 32};
  const double any = 1e9;
  int64_t dim = INT64_MAX;
  while (!takes(wish, given, 0) && (dim = largest_dim(given, wish->n_given, dim)) > small[0])
    for (size_t t = 0; t < sizeof small / sizeof *small && small[t] < dim; t++) {
      op_shape now[OP_MOST];
      memcpy(now, given, wish->n_given * sizeof *now);
      for (uint32_t i = 0; i < wish->n_given; i++)
        for (int32_t k = 0; k < now[i].rank; k++)
          if (now[i].dim[k] == dim) now[i].dim[k] = small[t];
      if (!takes(wish, now, any)) continue;
      memcpy(given, now, wish->n_given * sizeof *now);
      break;
    }
}

void op_sample_free(op_sample *s) {
  for (uint32_t i = 0; i < s->n_in; i++) free(s->in[i].data);
  hone_model_release(s->model);
  *s = (op_sample){0};
}
