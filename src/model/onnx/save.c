/* Writing ONNX. Protobuf wants the length of a message before its bytes, so each message is a function that
 * is run twice: once to count, once to write. Weights go from where they lie straight into the file. */
#include "model/ir/cast_names.h"
#include "model/ir/items.h"
#include "model/onnx/onnx.h"

#include "base/narrow.h"
#include "base/error.h"

#include <string.h>

enum { BUFFER = 1 << 16 };

typedef struct sink {
  uint64_t count;
  hn_writer *file; /* neither this nor memory: count only */
  hn_str *memory;
  const hn_onnx_filter *filter; /* NULL: all constants as they are */
  uint8_t *buffer;
  size_t used;
  hone_status status;
  hone_error *error;
} sink;

static void flush(sink *s) {
  if (s->status == HONE_OK && s->used) s->status = hn_writer_write(s->file, s->buffer, s->used, s->error);
  s->used = 0;
}

static void put(sink *s, const void *data, size_t size) {
  s->count += size;
  if (s->memory) hn_str_append(s->memory, data, size);
  if (!s->file || s->status != HONE_OK || !size) return;
  if (size > BUFFER - s->used) flush(s);
  if (size >= BUFFER) {
    if (s->status == HONE_OK) s->status = hn_writer_write(s->file, data, size, s->error);
    return;
  }
  memcpy(s->buffer + s->used, data, size);
  s->used += size;
}

static void varint(sink *s, uint64_t v) {
  uint8_t b[10];
  size_t n = 0;
  for (; v >= 0x80; v >>= 7) b[n++] = (uint8_t)(v | 0x80);
  b[n++] = (uint8_t)v;
  put(s, b, n);
}

static void number(sink *s, uint32_t field, int64_t v) {
  varint(s, field << 3);
  varint(s, (uint64_t)v);
}

static void bytes(sink *s, uint32_t field, const void *data, size_t size) {
  varint(s, field << 3 | 2);
  varint(s, size);
  put(s, data, size);
}

static void text(sink *s, uint32_t field, const char *t) { bytes(s, field, t, strlen(t)); }

static void real(sink *s, uint32_t field, float f) {
  varint(s, field << 3 | 5);
  put(s, &f, 4);
}

typedef void (*message)(sink *s, const void *what, const hn_model *m);

/* A counting sink goes through each message once; a writing one counts every level anew, which is the depth
 * times the small parts (weights are not looked at when they are counted). */
static void nested(sink *s, uint32_t field, message f, const void *what, const hn_model *m) {
  if (!s->file && !s->memory) {
    uint64_t before = s->count;
    f(s, what, m);
    varint(s, s->count - before);
    varint(s, field << 3 | 2);
    return;
  }
  sink counter = {.filter = s->filter};
  f(&counter, what, m);
  varint(s, field << 3 | 2);
  varint(s, counter.count);
  f(s, what, m);
}

/* ------------------------------------------------------------------ messages, with the field numbers of
 * onnx.proto */

typedef struct named_tensor {
  const char *name; /* NULL: none */
  const hone_tensor *tensor;
  bool absent; /* bytes are left out */
} named_tensor;

static void location_message(sink *s, const void *what, const hn_model *m) {
  (void)what, (void)m;
  text(s, 1, "location");
  text(s, 2, HN_ONNX_ABSENT);
}

/* Elements of 6 bits and fewer as files have them; groups of 8 fill whole bytes. */
static void packed(sink *s, uint32_t field, const hone_tensor *t, int64_t count) {
  enum { RUN = 512 };
  uint8_t part[RUN];
  varint(s, field << 3 | 2);
  varint(s, (uint64_t)hn_narrow_packed_bytes(t->desc.dtype, count));
  for (int64_t i = 0; i < count; i += RUN) {
    const int64_t n = count - i < RUN ? count - i : RUN;
    hn_narrow_pack(t->desc.dtype, (const uint8_t *)t->data + i, n, part);
    put(s, part, (size_t)hn_narrow_packed_bytes(t->desc.dtype, n));
  }
}

static void tensor_message(sink *s, const void *what, const hn_model *m) {
  const named_tensor *n = what;
  const hone_tensor *t = n->tensor;
  for (int32_t i = 0; i < t->desc.rank; i++) number(s, 1, t->desc.dim[i]);
  number(s, 2, t->desc.dtype);
  int64_t count = hone_desc_count(&t->desc);
  if (t->desc.dtype == HONE_DTYPE_STRING && !n->absent)
    for (int64_t i = 0; i < count; i++)
      bytes(s, 6, ((const hone_string *)t->data)[i].ptr, ((const hone_string *)t->data)[i].len);
  if (n->name) text(s, 8, n->name);
  if (n->absent) {
    nested(s, 13, location_message, NULL, m);
    number(s, 14, 1);
  } else if (hn_narrow_bits(t->desc.dtype))
    packed(s, 9, t, count);
  else if (t->desc.dtype != HONE_DTYPE_STRING)
    bytes(s, 9, t->data, (size_t)count * hone_dtype_size(t->desc.dtype));
}

static void dim_message(sink *s, const void *what, const hn_model *m) {
  int64_t d = *(const int64_t *)what;
  const char *symbol = hn_model_symbol_name(m, d);
  if (d >= 0)
    number(s, 1, d);
  else if (symbol)
    text(s, 2, symbol);
}

static void shape_message(sink *s, const void *what, const hn_model *m) {
  const hone_tensor_desc *d = what;
  for (int32_t i = 0; i < d->rank; i++) nested(s, 1, dim_message, &d->dim[i], m);
}

static void tensor_type_message(sink *s, const void *what, const hn_model *m) {
  const hone_tensor_desc *d = what;
  number(s, 1, d->dtype);
  if (d->rank >= 0) nested(s, 2, shape_message, d, m);
}

/* A type of rank 0 that is no tensor's: what is in it, of any shape. */
static void type_message(sink *s, const void *what, const hn_model *m);

static void element_message(sink *s, const void *what, const hn_model *m) {
  nested(s, 1, type_message, what, m);
}

static void map_message(sink *s, const void *what, const hn_model *m) {
  const hone_tensor_desc *d = what;
  number(s, 1, hn_map_key(d->dtype));
  nested(s, 2, type_message, &(hone_tensor_desc){.dtype = hone_dtype_element(d->dtype), .rank = -1}, m);
}

static void type_message(sink *s, const void *what, const hn_model *m) {
  const hone_tensor_desc *d = what;
  if (hn_dtype_is_map(d->dtype)) {
    nested(s, 5, map_message, d, m);
    return;
  }
  const unsigned outer = d->dtype & HONE_OPTIONAL ? HONE_OPTIONAL : d->dtype & HONE_SEQUENCE;
  if (!outer) {
    nested(s, 1, tensor_type_message, d, m);
    return;
  }
  hone_tensor_desc inner = {.dtype = (hone_dtype)(d->dtype & ~outer), .rank = -1};
  nested(s, outer == HONE_OPTIONAL ? 9 : 4, element_message, &inner, m);
}

static void value_message(sink *s, const void *what, const hn_model *m) {
  const hn_value *v = what;
  const hone_tensor_desc *d = &v->desc;
  if (d->rank < 0 && v->declared && v->declared->dtype == d->dtype) d = v->declared;
  text(s, 1, v->name);
  if (d->dtype != HONE_DTYPE_NONE) nested(s, 2, type_message, d, m);
}

static void graph_message(sink *s, const void *what, const hn_model *m);

static void attribute_message(sink *s, const void *what, const hn_model *m) {
  const hn_attr *a = what;
  text(s, 1, a->name);
  switch (a->type) {
  case HONE_ATTR_FLOAT: real(s, 2, a->f); break;
  case HONE_ATTR_INT: number(s, 3, a->i); break;
  case HONE_ATTR_STRING: bytes(s, 4, a->s.ptr, a->s.len); break;
  case HONE_ATTR_TENSOR: nested(s, 5, tensor_message, &(named_tensor){NULL, a->t, false}, m); break;
  case HONE_ATTR_TYPE:
    nested(s, 14, type_message, &(hone_tensor_desc){.dtype = (hone_dtype)a->i, .rank = -1}, m);
    break;
  case HONE_ATTR_GRAPH: nested(s, 6, graph_message, a->g, m); break;
  case HONE_ATTR_FLOATS:
    for (size_t i = 0; i < a->list.n; i++) real(s, 7, ((const float *)a->list.ptr)[i]);
    break;
  case HONE_ATTR_INTS:
    for (size_t i = 0; i < a->list.n; i++) number(s, 8, ((const int64_t *)a->list.ptr)[i]);
    break;
  case HONE_ATTR_STRINGS:
    for (size_t i = 0; i < a->list.n; i++)
      bytes(s, 9, ((const hone_string *)a->list.ptr)[i].ptr, ((const hone_string *)a->list.ptr)[i].len);
    break;
  default: break;
  }
  number(s, 20, a->type);
}

/* The attribute in the form that the model's opset has: Cast's `to` was a name before opset 6. Passes set the
 * number, and functions may be of another opset than the model. */
static hn_attr spelled(const hone_node *n, const hn_attr *a, const hn_model *m) {
  hn_attr as = *a;
  if (n->domain[0] || strcmp(n->op_type, "Cast") != 0 || strcmp(a->name, "to") != 0) return as;
  if (hn_model_opset(m, "") >= 6) {
    if (a->type == HONE_ATTR_STRING) as.type = HONE_ATTR_INT, as.i = hn_cast_named(a->s.ptr);
    return as;
  }
  const char *name = a->type == HONE_ATTR_INT ? hn_cast_name(a->i) : NULL;
  if (name) as.type = HONE_ATTR_STRING, as.s = (hone_string){name, strlen(name)};
  return as;
}

static void node_message(sink *s, const void *what, const hn_model *m) {
  const hone_node *n = what;
  uint32_t n_in = n->n_in, n_out = n->n_out;
  while (n_in && !n->in[n_in - 1]) n_in--;
  while (n_out && !n->out[n_out - 1]) n_out--;
  for (uint32_t i = 0; i < n_in; i++) text(s, 1, n->in[i] ? n->in[i]->name : "");
  for (uint32_t i = 0; i < n_out; i++) text(s, 2, n->out[i] ? n->out[i]->name : "");
  text(s, 3, n->name);
  text(s, 4, n->op_type);
  for (uint32_t i = 0; i < n->n_attr; i++) {
    const hn_attr as = spelled(n, &n->attr[i], m);
    nested(s, 5, attribute_message, &as, m);
  }
  if (n->domain[0]) text(s, 7, n->domain);
}

/* Constants that somebody reads are initializers. */
static bool is_initializer(const hn_value *v) {
  return v->constant && !v->producer && (hn_value_needed(v) || v->is_input);
}

static void graph_message(sink *s, const void *what, const hn_model *m) {
  const hn_graph *g = what;
  for (const hone_node *n = g->first; n; n = n->next) nested(s, 1, node_message, n, m);
  text(s, 2, g->name);
  for (size_t i = 0; i < g->values.len; i++) {
    const hn_value *v = g->values.ptr[i];
    if (!is_initializer(v)) continue;
    hone_tensor t = *v->constant;
    bool absent = s->filter && s->filter->leave_out(s->filter->self, v, &t);
    nested(s, 5, tensor_message, &(named_tensor){v->name, &t, absent}, m);
  }
  for (size_t i = 0; i < g->inputs.len; i++) nested(s, 11, value_message, g->inputs.ptr[i], m);
  for (size_t i = 0; i < g->values.len && m->ir_version < 4;
       i++) { /* before IR 4 every initializer is an input */
    const hn_value *v = g->values.ptr[i];
    if (is_initializer(v) && !v->is_input) nested(s, 11, value_message, v, m);
  }
  for (size_t i = 0; i < g->outputs.len; i++) nested(s, 12, value_message, g->outputs.ptr[i], m);
  for (size_t i = 0; i < g->values.len; i++) {
    const hn_value *v = g->values.ptr[i];
    if (v->producer && !v->is_output && v->desc.dtype != HONE_DTYPE_NONE && v->desc.rank >= 0)
      nested(s, 13, value_message, v, m);
  }
}

static void opset_message(sink *s, const void *what, const hn_model *m) {
  (void)m;
  const hn_opset *o = what;
  if (o->domain[0]) text(s, 1, o->domain);
  number(s, 2, o->version);
}

static void model_message(sink *s, const void *what, const hn_model *m) {
  (void)what;
  number(s, 1, m->ir_version);
  text(s, 2, m->producer && *m->producer ? m->producer : "hone");
  nested(s, 7, graph_message, m->graph, m);
  for (size_t i = 0; i < m->opsets.len; i++) nested(s, 8, opset_message, &m->opsets.ptr[i], m);
}

/* ------------------------------------------------------------------ files */

static hone_status write_file(message f, const void *what, const hn_model *m, const char *path,
                              hone_error *error) {
  sink counter = {.error = NULL};
  f(&counter, what, m);
  if (counter.count > INT32_MAX) {
    hn_fail(error, HONE_ERROR_UNSUPPORTED, "the model has %llu bytes, an ONNX file can hold 2147483647",
            (unsigned long long)counter.count);
    hn_error_where(error, "%s", path);
    return HONE_ERROR_UNSUPPORTED;
  }
  hn_writer file;
  hone_status status = hn_writer_open(path, &file, error);
  if (status != HONE_OK) return status;
  sink s = {.file = &file, .buffer = hn_malloc(BUFFER), .error = error};
  if (!s.buffer)
    s.status = hn_fail_memory(error, BUFFER, "writing a model");
  else {
    f(&s, what, m);
    flush(&s);
  }
  hn_free(s.buffer);
  if (s.status == HONE_OK) return hn_writer_commit(&file, error);
  hn_writer_abandon(&file);
  return s.status;
}

/* What a file cannot say: a node of another opset than the model imports (inlined from a function that
 * imports its own), unless its definition is the same in both; a type that Cast had no name for; inputs and
 * outputs whose type is too deep a nest for a descriptor. */
static hone_status check_sayable(const hn_model *m, const hn_graph *g, hone_error *error) {
  hone_status status = HONE_OK;
  for (const hone_node *n = g->first; n && status == HONE_OK; n = n->next) {
    int64_t opset = hn_model_opset(m, n->domain);
    bool same =
        opset == n->opset || (n->op && opset >= n->op->since && (!n->op->until || opset <= n->op->until));
    if (!same) {
      hn_fail(error, HONE_ERROR_UNSUPPORTED,
              "%s is of opset %d, the model imports %lld: one file cannot hold both", n->op_type,
              (int)n->opset, (long long)opset);
      hn_error_where(error, "node '%s'", n->name);
      return HONE_ERROR_UNSUPPORTED;
    }
    for (uint32_t i = 0; i < n->n_attr && status == HONE_OK; i++) {
      const hn_attr as = spelled(n, &n->attr[i], m);
      if (as.type == HONE_ATTR_GRAPH) status = check_sayable(m, as.g, error);
      if (opset < 6 && !n->domain[0] && as.type == HONE_ATTR_INT && strcmp(n->op_type, "Cast") == 0 &&
          strcmp(as.name, "to") == 0) {
        status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "Cast of opset %lld has no name for type %lld",
                         (long long)opset, (long long)as.i);
        hn_error_where(error, "node '%.80s'", n->name);
      }
    }
  }
  for (size_t i = 0; i < g->inputs.len + g->outputs.len && status == HONE_OK; i++) {
    const hn_value *v = i < g->inputs.len ? g->inputs.ptr[i] : g->outputs.ptr[i - g->inputs.len];
    if (v->foreign)
      status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "the type of '%.80s' cannot be written", v->name);
  }
  return status;
}

hone_status hn_onnx_save(const hn_model *model, const char *path, hone_error *error) {
  hone_status status = check_sayable(model, model->graph, error);
  if (status != HONE_OK) {
    hn_error_where(error, "%s", path);
    return status;
  }
  return write_file(model_message, NULL, model, path, error);
}

hone_status hn_onnx_save_memory(const hn_model *model, const hn_onnx_filter *filter, hn_str *out,
                                hone_error *error) {
  hone_status status = check_sayable(model, model->graph, error);
  if (status != HONE_OK) return status;
  sink s = {.memory = out, .filter = filter};
  model_message(&s, NULL, model);
  return out->failed ? hn_fail_memory(error, s.count, "writing a model") : HONE_OK;
}

hone_status hn_onnx_save_tensor(const hone_tensor *tensor, const char *name, const char *path,
                                hone_error *error) {
  return write_file(tensor_message, &(named_tensor){name, tensor, false}, NULL, path, error);
}
