/* Inputs of another type and layout than the model's own: nodes in front of it make one of the other. */
#include "model/take.h"

#include "base/error.h"
#include "model/operators.h"

#include <string.h>

/* Nodes behind each other, before the first of the model. */
typedef struct chain {
  hn_graph *graph;
  hone_node *before;
  hn_value *at; /* what the last one made */
  bool failed;  /* no memory */
} chain;

static hone_node *append(chain *c, const char *op, hn_value *other) {
  hn_value *out = c->failed ? NULL : hn_value_create(c->graph, NULL);
  hone_node *n = out ? hn_node_create(c->graph, c->before, op, NULL, NULL, (hn_value *[]){c->at, other},
                                      other ? 2 : 1, &out, 1)
                     : NULL;
  c->failed |= !n;
  if (n) c->at = out;
  return n;
}

static void cast(chain *c, hone_dtype to) {
  hone_node *n = append(c, "Cast", NULL);
  if (n) c->failed |= !hn_node_set_int(n, "to", to);
}

static hn_value *constant(chain *c, hone_dtype dtype, int32_t rank, const int64_t *dim, const void *data) {
  const hone_tensor_desc d = hone_desc(dtype, rank, dim);
  hn_value *v = c->failed ? NULL : hn_value_constant(c->graph, NULL, &d, data, true);
  c->failed |= !v;
  return v;
}

/* Where the axes of a picture are. */
typedef struct axes {
  int32_t c, h, w;
} axes;

static axes axes_of(int32_t rank, bool last) {
  const int32_t a = rank - 3;
  return last ? (axes){a + 2, a, a + 1} : (axes){a, a + 1, a + 2};
}

static bool is_picture(const hone_tensor_desc *d, hone_pixels pixels, bool *last) {
  if (d->rank != 3 && d->rank != 4) return false;
  const int64_t first = d->dim[d->rank - 3], end = d->dim[d->rank - 1];
  if (pixels == HONE_PIXELS_AUTO)
    *last = first != 1 && first != 3 && (end == 1 || end == 3);
  else
    *last = pixels == HONE_PIXELS_NHWC;
  const int64_t channels = *last ? end : first;
  return channels == 1 || channels == 3;
}

/* A number for each channel, as it stands beside the picture. */
static hn_value *channels(chain *c, const axes *a, int32_t rank, int64_t n, const float *v) {
  const int64_t dim[3] = {n, 1, 1};
  return constant(c, HONE_DTYPE_F32, rank - a->c, dim, v);
}

static void reverse(chain *c, const axes *a) {
  hn_value *order = constant(c, HONE_DTYPE_I64, 1, (const int64_t[]){3}, (const int64_t[]){2, 1, 0});
  hone_node *n = order ? append(c, "Gather", order) : NULL;
  if (n) c->failed |= !hn_node_set_int(n, "axis", a->c);
}

/* (value * scale - mean) / std as one product and one sum. */
static void normalise(chain *c, const axes *a, int32_t rank, int64_t n, const hone_preprocess *o) {
  static const hone_preprocess imagenet = {.scale = 1.0f / 255,
                                           .mean = {0.485f, 0.456f, 0.406f},
                                           .std = {0.229f, 0.224f, 0.225f}},
                               grey = {.scale = 1.0f / 255, .std = {1, 1, 1}};
  const hone_preprocess *by = o->normalise ? o : n == 1 ? &grey : &imagenet;
  float scale[3], shift[3];
  bool shifts = false;
  for (int i = 0; i < 3; i++) {
    scale[i] = (float)((double)by->scale / (double)by->std[i]);
    shift[i] = (float)(-(double)by->mean[i] / (double)by->std[i]);
    shifts |= i < n && shift[i] != 0;
  }
  append(c, "Mul", channels(c, a, rank, n, scale));
  if (shifts) append(c, "Add", channels(c, a, rank, n, shift));
}

static void transpose(chain *c, int32_t rank, const axes *from, const axes *to) {
  int64_t perm[4] = {0};
  hone_node *n = append(c, "Transpose", NULL);
  perm[to->c] = from->c, perm[to->h] = from->h, perm[to->w] = from->w;
  if (n) c->failed |= !hn_node_set_ints(n, "perm", perm, (size_t)rank);
}

static hn_value *find(hn_model *m, const char *name, hone_error *error) {
  hn_value *only = NULL;
  for (size_t i = 0; i < m->graph->inputs.len; i++) {
    hn_value *v = m->graph->inputs.ptr[i];
    if (name && strcmp(v->name, name) == 0) return v;
    if (name || v->constant || v->foreign || !hone_dtype_is_float(v->desc.dtype)) continue;
    if (only) {
      hn_fail(error, HONE_ERROR_USAGE, "inputs '%s' and '%s' are both of floats: name one", only->name,
              v->name);
      return NULL;
    }
    only = v;
  }
  if (only) return only;
  hn_fail(error, HONE_ERROR_USAGE,
          name ? "the model has no input '%.100s'" : "the model has no input of floats", name);
  return NULL;
}

static hone_status check(const hn_value *v, hone_dtype dtype, hone_error *error) {
  if (v->foreign || !hone_dtype_is_float(v->desc.dtype) || hone_dtype_size(v->desc.dtype) < 2 || v->is_output)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "input '%s' (%s%s) cannot be taken as %s", v->name,
                   hone_dtype_name(v->desc.dtype), v->is_output ? ", an output, too" : "",
                   hone_dtype_name(dtype));
  return HONE_OK;
}

static hone_status not_a_picture(const hn_value *v, hone_error *error) {
  char text[128];
  hn_fail(error, HONE_ERROR_USAGE, "input '%s' is no picture", v->name);
  hn_error_expected(error, "3 or 4 dimensions, of which 1 or 3 channels");
  hn_error_got(error, "%s", hone_desc_format(&v->desc, text, sizeof text));
  return HONE_ERROR_USAGE;
}

static hone_status put_before(hn_value *v, const hn_arriving *o, hone_error *error) {
  const hone_dtype own = v->desc.dtype;
  const int32_t rank = v->desc.rank;
  bool last = false;
  const bool picture = (o->normalise || o->pixels != HONE_PIXELS_AUTO);
  if (picture && !is_picture(&v->desc, o->by.pixels, &last)) return not_a_picture(v, error);
  const bool comes_last = o->pixels == HONE_PIXELS_AUTO ? last : o->pixels == HONE_PIXELS_NHWC;
  hone_tensor_desc d = v->desc;
  d.dtype = o->dtype;
  chain c = {.graph = v->graph, .before = v->graph->first};
  hn_value *inside = hn_value_create(v->graph, NULL);
  if (!inside || !hn_value_replace(v, inside)) return hn_fail_memory(error, sizeof *inside, "an input");
  c.at = v;
  if (picture) {
    const axes from = axes_of(rank, comes_last), to = axes_of(rank, last);
    const int64_t n = d.dim[to.c];
    const int64_t dim[] = {d.dim[to.c], d.dim[to.h], d.dim[to.w]};
    d.dim[from.c] = dim[0], d.dim[from.h] = dim[1], d.dim[from.w] = dim[2];
    d = rank ? hone_desc(d.dtype, rank, d.dim) : d;
    if (o->normalise && o->by.bgr && n == 3) reverse(&c, &from);
    if (o->dtype != HONE_DTYPE_F32) cast(&c, HONE_DTYPE_F32);
    if (o->normalise) normalise(&c, &from, rank, n, &o->by);
    if (from.c != to.c) transpose(&c, rank, &from, &to);
    if (own != HONE_DTYPE_F32) cast(&c, own);
  } else
    cast(&c, own);
  v->desc = d;
  /* What the model's nodes read is what the last node makes. */
  if (!c.failed) c.failed = c.at == v || !hn_value_replace(inside, c.at);
  return c.failed ? hn_fail_memory(error, sizeof *inside, "an input") : HONE_OK;
}

hone_status hn_model_take(hn_model *model, const char *input, const hn_arriving *o, hn_model **out,
                          hone_error *error) {
  hn_model *m = NULL;
  hone_status status = hn_model_clone(model, &m, error);
  if (status != HONE_OK) return status;
  hn_value *v = find(m, input, error);
  status = v ? check(v, o->dtype, error) : HONE_ERROR_USAGE;
  /* Nothing to do: the input is what arrives. */
  const bool same =
      status == HONE_OK && v->desc.dtype == o->dtype && !o->normalise && o->pixels == HONE_PIXELS_AUTO;
  if (status == HONE_OK && !same && hn_model_opset(m, "") < 7)
    status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "inputs of models before opset 7 are taken as they are");
  if (status == HONE_OK && !same) status = put_before(v, o, error);
  if (status == HONE_OK) status = hn_model_ready(m, error);
  if (status == HONE_OK)
    *out = m;
  else
    hn_model_destroy(m);
  return status;
}
