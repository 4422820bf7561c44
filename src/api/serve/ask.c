/* The body of a request for a run: JSON, behind it bytes of tensors where the header says how long the JSON
 * is. Nothing that it says is believed before the bytes for it are there. */
#include "api/serve/serve.h"
#include "base/error.h"
#include "base/json_read.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { REST_BYTES = 1 << 20, MOST_SPANS = 256, TEXTS_BYTES = 64 << 20, MOST_CLASSES = 1000 };

/* Arrays of numbers are cut out of the text before it becomes a document: where they were. */
typedef struct span {
  uint32_t input; /* element of "inputs" */
  size_t at, end, rest;
} span;

typedef struct body {
  const char *text, *tail; /* JSON; tensors behind it */
  size_t size, tail_size, taken;
  hn_str rest; /* JSON, with null for the arrays that were cut out */
  HN_VEC(span) spans;
  json_t *doc;
  hone_error *error;
} body;

static hone_status bad(const body *b, const char *what, const char *name) {
  return hn_fail(b->error, HONE_ERROR_INPUT, what, name);
}

/* ------------------------------------------------------------------ cutting arrays out */

static const char *behind_text(const char *at, const char *end) {
  for (at++; at < end && *at != '"'; at++) at += *at == '\\';
  return at < end ? at + 1 : end;
}

/* Behind the bracket that closes the one at `at`. */
static const char *behind_array(const char *at, const char *end) {
  size_t depth = 0;
  while (at < end) {
    if (*at == '"') {
      at = behind_text(at, end);
      continue;
    }
    depth += *at == '[';
    depth -= *at == ']';
    at++;
    if (!depth) break;
  }
  return at;
}

/* Is what stays beside the numbers too much, up to `at`? */
static bool too_long(const body *b, const char *copied, const char *at) {
  if (b->rest.len + (size_t)(at - copied) <= REST_BYTES) return false;
  hn_fail(b->error, HONE_ERROR_INPUT, "the request's JSON is larger than %d KiB beside its numbers",
          REST_BYTES >> 10);
  hn_error_hint(b->error, "send texts and tensors as bytes: docs/guide/serve.md");
  return true;
}

static bool cut_one(body *b, const char **copied, uint32_t input, const char *at, const char *end) {
  hn_str_append(&b->rest, *copied, (size_t)(at - *copied));
  const span s = {input, (size_t)(at - b->text), (size_t)(end - b->text), b->rest.len};
  hn_str_append(&b->rest, "null", 4);
  *copied = end;
  return hn_vec_push(&b->spans, s);
}

/* Cuts what follows "data" in the objects of the list that follows "inputs" in the outermost object. */
static hone_status cut(body *b) {
  enum { INPUTS = 2, INPUT = 3 }; /* how deep they stand */
  const char *end = b->text + b->size, *copied = b->text;
  char kind[INPUT + 1] = {0};
  bool key = false, inputs = false, data = false;
  size_t depth = 0;
  uint32_t input = 0;
  for (const char *at = b->text; at < end;) {
    if (too_long(b, copied, at)) return HONE_ERROR_INPUT;
    const char c = *at;
    if (c == '"') {
      const char *stop = behind_text(at, end);
      const size_t n = (size_t)(stop - at);
      if (key && depth == 1) inputs = n == 8 && memcmp(at, "\"inputs\"", n) == 0;
      if (key && depth == INPUT) data = n == 6 && memcmp(at, "\"data\"", n) == 0;
      key = false;
      at = stop;
      continue;
    }
    if (c == '[' && depth == INPUT && kind[INPUT] == '{' && kind[INPUTS] == '[' && inputs && data) {
      const char *stop = behind_array(at, end);
      if (b->spans.len == MOST_SPANS) return bad(b, "the request has too many inputs%s", "");
      if (!cut_one(b, &copied, input, at, stop)) return hn_fail_memory(b->error, b->size, "a request");
      data = false;
      at = stop;
      continue;
    }
    if (c == '{' || c == '[') {
      if (++depth <= INPUT) kind[depth] = c;
      if (depth == INPUTS) input = 0;
      key = c == '{';
      data = false;
    } else if (c == '}' || c == ']') {
      depth -= depth > 0;
    } else if (c == ',') {
      key = depth > 0 && depth <= INPUT && kind[depth] == '{';
      input += depth == INPUTS;
      data = false;
    }
    at++;
  }
  if (too_long(b, copied, end)) return HONE_ERROR_INPUT;
  hn_str_append(&b->rest, copied, (size_t)(end - copied));
  return b->rest.failed ? hn_fail_memory(b->error, b->size, "a request") : HONE_OK;
}

static hone_status read_json(body *b) {
  json_error_t where = {0};
  hone_status status = cut(b);
  if (status != HONE_OK) return status;
  b->doc = hn_json_load(b->rest.ptr ? b->rest.ptr : "", b->rest.len, JSON_REJECT_DUPLICATES, &where);
  if (!b->doc) {
    size_t at = where.position > 0 ? (size_t)where.position : 0;
    for (size_t i = b->spans.len; i-- > 0;)
      if (b->spans.ptr[i].rest < (size_t)where.position) at += b->spans.ptr[i].end - b->spans.ptr[i].at - 4;
    hn_fail(b->error, HONE_ERROR_INPUT, "the request is no JSON: %.120s", where.text);
    hn_error_where(b->error, "byte %zu", at);
    return HONE_ERROR_INPUT;
  }
  return json_is_object(b->doc) ? HONE_OK : bad(b, "the request is no JSON object%s", "");
}

/* ------------------------------------------------------------------ parameters */

static const json_t *parameter(const json_t *of, const char *name) {
  return json_object_get(json_object_get(of, "parameters"), name);
}

static hone_status flag(const body *b, const json_t *of, const char *name, bool *out) {
  const json_t *v = parameter(of, name);
  if (!v) return HONE_OK;
  if (!json_is_boolean(v)) return bad(b, "parameter '%s' is neither true nor false", name);
  *out = json_is_true(v);
  return HONE_OK;
}

/* ------------------------------------------------------------------ inputs */

static hone_status outside(const body *b, const hn_served_port *p, int32_t k, int64_t got) {
  hn_fail(b->error, HONE_ERROR_INPUT, "dimension %d of input '%.80s' does not fit the model", (int)k,
          p->name);
  if (p->least[k] == p->most[k])
    hn_error_expected(b->error, "%lld", (long long)p->most[k]);
  else
    hn_error_expected(b->error, "%lld to %lld", (long long)p->least[k], (long long)p->most[k]);
  hn_error_got(b->error, "%lld", (long long)got);
  return HONE_ERROR_INPUT;
}

static hone_status read_shape(const body *b, const json_t *of, const hn_served_port *p,
                              hone_tensor_desc *out) {
  const json_t *shape = json_object_get(of, "shape");
  int64_t dim[HONE_MAX_RANK];
  if (!json_is_array(shape)) return bad(b, "input '%.80s' has no shape", p->name);
  const size_t rank = json_array_size(shape);
  if (rank != (size_t)p->rank) {
    hn_fail(b->error, HONE_ERROR_INPUT, "the shape of input '%.80s' has %zu dimensions", p->name, rank);
    hn_error_expected(b->error, "%d", (int)p->rank);
    return HONE_ERROR_INPUT;
  }
  for (size_t k = 0; k < rank; k++) {
    const json_t *v = json_array_get(shape, k);
    if (!json_is_integer(v)) return bad(b, "the shape of input '%.80s' is no list of integers", p->name);
    dim[k] = json_integer_value(v);
    if (dim[k] < p->least[k] || dim[k] > p->most[k]) return outside(b, p, (int32_t)k, dim[k]);
  }
  *out = hone_desc(p->dtype, (int32_t)rank, dim);
  return HONE_OK;
}

/* A block with `count` texts and behind them their bytes. */
static hone_string *texts(const body *b, size_t count, size_t bytes, char **to) {
  hone_string *s = hn_malloc(count * sizeof *s + bytes + 1);
  if (!s) hn_fail_memory(b->error, bytes, "a request's texts");
  *to = s ? (char *)(s + count) : NULL;
  return s;
}

/* Texts of arrays in arrays, one after the other; with `out` they are copied. False: something else is there.
 */
static bool gather_texts(const json_t *v, size_t *count, size_t *bytes, hone_string *out, char **to) {
  if (json_is_string(v)) {
    const size_t n = json_string_length(v);
    if (out) {
      out[*count] = (hone_string){*to, n};
      memcpy(*to, json_string_value(v), n);
      *to += n;
    }
    *count += 1, *bytes += n;
    return true;
  }
  bool good = json_is_array(v);
  for (size_t i = 0; good && i < json_array_size(v); i++)
    good = gather_texts(json_array_get(v, i), count, bytes, out, to);
  return good;
}

static hone_status read_texts(const body *b, const span *s, const char *name, hone_tensor *t) {
  json_error_t where;
  size_t count = 0, bytes = 0, again = 0, same = 0;
  char *to = NULL;
  const char *text = b->text + s->at;
  if (hn_json_need(text, s->end - s->at) > TEXTS_BYTES)
    return bad(b, "the texts of input '%.80s' are too many for JSON; send them as bytes", name);
  json_t *v = hn_json_load(text, s->end - s->at, JSON_ALLOW_NUL, &where);
  hone_status status = HONE_OK;
  if (!v || !gather_texts(v, &count, &bytes, NULL, &to))
    status = bad(b, "the data of input '%.80s' is no array of strings", name);
  else if ((int64_t)count != hone_desc_count(&t->desc))
    status = bad(b, "input '%.80s' has not as many strings as its shape says", name);
  else if (!(t->data = texts(b, count, bytes, &to)))
    status = HONE_ERROR_MEMORY;
  else
    gather_texts(v, &again, &same, t->data, &to);
  json_decref(v);
  return status;
}

/* Texts as bytes: the length of each in four bytes before it. */
static hone_status unpack_texts(const body *b, const char *from, size_t size, const char *name,
                                hone_tensor *t) {
  const int64_t count = hone_desc_count(&t->desc);
  size_t at = 0;
  char *to;
  if ((uint64_t)count > size / 4)
    return bad(b, "the bytes of input '%.80s' are fewer than its shape says", name);
  hone_string *s = t->data = texts(b, (size_t)count, size, &to);
  if (!s) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < count; i++) {
    uint32_t n;
    if (size - at < 4) return bad(b, "the bytes of input '%.80s' end within a string", name);
    memcpy(&n, from + at, 4);
    at += 4;
    if (size - at < n) return bad(b, "the bytes of input '%.80s' end within a string", name);
    s[i] = (hone_string){to, n};
    memcpy(to, from + at, n);
    to += n, at += n;
  }
  return at == size ? HONE_OK : bad(b, "the bytes of input '%.80s' are more than its shape says", name);
}

static hone_status wrong_size(const body *b, const char *name, int64_t want, int64_t got) {
  hn_fail(b->error, HONE_ERROR_INPUT, "input '%.80s' has not as many bytes as its shape and type say", name);
  hn_error_expected(b->error, "%lld", (long long)want);
  hn_error_got(b->error, "%lld", (long long)got);
  return HONE_ERROR_INPUT;
}

static hone_status read_bytes(body *b, const json_t *size, const char *name, hone_tensor *t) {
  const int64_t want = hone_desc_bytes(&t->desc), n = json_is_integer(size) ? json_integer_value(size) : -1;
  if (n < 0) return bad(b, "'binary_data_size' of input '%.80s' is no size", name);
  if ((uint64_t)n > b->tail_size - b->taken) {
    hn_fail(b->error, HONE_ERROR_INPUT, "the request ends within the bytes of input '%.80s'", name);
    hn_error_expected(b->error, "%lld", (long long)n);
    hn_error_got(b->error, "%zu", b->tail_size - b->taken);
    hn_error_hint(b->error, "Inference-Header-Content-Length says how long the JSON before them is");
    return HONE_ERROR_INPUT;
  }
  const char *from = b->tail + b->taken;
  b->taken += (size_t)n;
  if (t->desc.dtype == HONE_DTYPE_STRING) return unpack_texts(b, from, (size_t)n, name, t);
  if (n != want) return wrong_size(b, name, want, n);
  t->data = hn_aligned(HN_MEM_ALIGN, (size_t)n + 1);
  if (!t->data) return hn_fail_memory(b->error, (unsigned long long)n, "an input");
  memcpy(t->data, from, (size_t)n);
  for (int64_t i = 0; t->desc.dtype == HONE_DTYPE_BOOL && i < n; i++) ((uint8_t *)t->data)[i] = from[i] != 0;
  return HONE_OK;
}

static hone_status read_numbers(const body *b, const span *s, const char *name, hone_tensor *t) {
  const int64_t count = hone_desc_count(&t->desc), bytes = hone_desc_bytes(&t->desc);
  if (count < 0 || (uint64_t)count > (s->end - s->at)) /* a number and what parts it from the next */
    return bad(b, "input '%.80s' has fewer numbers than its shape", name);
  t->data = hn_aligned(HN_MEM_ALIGN, (size_t)bytes + 1);
  return t->data ? hn_ask_numbers(b->text + s->at, s->end - s->at, name, t, b->error)
                 : hn_fail_memory(b->error, (unsigned long long)bytes, "an input");
}

static const span *span_of(const body *b, size_t input) {
  for (size_t i = 0; i < b->spans.len; i++)
    if (b->spans.ptr[i].input == input) return &b->spans.ptr[i];
  return NULL;
}

static hone_status read_input(body *b, const hn_served *m, size_t at, const json_t *of, hn_ask *ask) {
  const char *name = json_string_value(json_object_get(of, "name")),
             *type = json_string_value(json_object_get(of, "datatype"));
  const json_t *size = parameter(of, "binary_data_size"), *data = json_object_get(of, "data");
  uint32_t i = 0;
  if (!name) return bad(b, "an input has no name%s", "");
  while (i < m->n_in && strcmp(m->in[i].name, name) != 0) i++;
  if (i == m->n_in) {
    hn_fail(b->error, HONE_ERROR_INPUT, "the model has no input '%.80s'", name);
    hn_error_hint(b->error, "its first input is '%.80s'", m->n_in ? m->in[0].name : "");
    return HONE_ERROR_INPUT;
  }
  hone_tensor *t = &ask->in[i];
  if (t->desc.dtype != HONE_DTYPE_NONE) return bad(b, "input '%.80s' is given twice", name);
  if (!type || hn_served_dtype(type) != m->in[i].dtype) {
    hn_fail(b->error, HONE_ERROR_INPUT, "input '%.80s' has another type", name);
    hn_error_expected(b->error, "%s", hn_served_datatype(m->in[i].dtype));
    hn_error_got(b->error, "%.40s", type ? type : "none");
    return HONE_ERROR_INPUT;
  }
  const hone_status status = read_shape(b, of, &m->in[i], &t->desc);
  if (status != HONE_OK) return status;
  const span *s = span_of(b, at);
  if (size && data) return bad(b, "input '%.80s' has both 'data' and 'binary_data_size'", name);
  if (size) return read_bytes(b, size, name, t);
  if (!data || !s)
    return bad(b, "input '%.80s' has no 'data', which is an array, and no 'binary_data_size'", name);
  return t->desc.dtype == HONE_DTYPE_STRING ? read_texts(b, s, name, t) : read_numbers(b, s, name, t);
}

static hone_status read_inputs(body *b, const hn_served *m, hn_ask *ask) {
  const json_t *list = json_object_get(b->doc, "inputs");
  if (!json_is_array(list)) return bad(b, "the request has no list 'inputs'%s", "");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const hone_status status = read_input(b, m, i, json_array_get(list, i), ask);
    if (status != HONE_OK) return status;
  }
  for (uint32_t i = 0; i < m->n_in; i++)
    if (ask->in[i].desc.dtype == HONE_DTYPE_NONE) return bad(b, "input '%.80s' is missing", m->in[i].name);
  return b->taken == b->tail_size ? HONE_OK : bad(b, "bytes are left behind those of the inputs%s", "");
}

/* One symbol has one size in all inputs. */
static hone_status read_samples(const body *b, const hn_served *m, hn_ask *ask) {
  ask->samples = 1;
  for (uint32_t i = 0; m->symbol && i < m->n_in; i++) {
    if (i && ask->in[i].desc.dim[0] != ask->samples)
      return bad(b, "the first dimension of input '%.80s' is not that of the others", m->in[i].name);
    ask->samples = ask->in[i].desc.dim[0];
  }
  return HONE_OK;
}

/* ------------------------------------------------------------------ outputs */

static hone_status read_output(const body *b, const hn_served *m, const json_t *of, bool binary,
                               hn_told *out) {
  const char *name = json_string_value(json_object_get(of, "name"));
  const json_t *classes = parameter(of, "classification");
  uint32_t i = 0;
  if (!name) return bad(b, "an output has no name%s", "");
  while (i < m->n_out && strcmp(m->out[i].name, name) != 0) i++;
  if (i == m->n_out) {
    hn_fail(b->error, HONE_ERROR_INPUT, "the model has no output '%.80s'", name);
    hn_error_hint(b->error, "its first output is '%.80s'", m->n_out ? m->out[0].name : "");
    return HONE_ERROR_INPUT;
  }
  *out = (hn_told){.output = i, .binary = binary};
  const hone_status status = flag(b, of, "binary_data", &out->binary);
  if (status != HONE_OK || !classes) return status;
  if (!json_is_integer(classes) || json_integer_value(classes) < 1 ||
      json_integer_value(classes) > MOST_CLASSES || m->out[i].dtype == HONE_DTYPE_STRING)
    return bad(b, "parameter 'classification' of output '%.80s' is no number of classes from 1 to 1000",
               name);
  out->classes = (uint32_t)json_integer_value(classes);
  return HONE_OK;
}

static hone_status read_outputs(const body *b, const hn_served *m, hn_ask *ask) {
  const json_t *list = json_object_get(b->doc, "outputs");
  bool binary = false;
  hone_status status = flag(b, b->doc, "binary_data_output", &binary);
  if (status != HONE_OK) return status;
  if (list && !json_is_array(list)) return bad(b, "'outputs' is no list%s", "");
  const size_t n = json_array_size(list);
  if (n > MOST_SPANS) return bad(b, "the request names too many outputs%s", "");
  ask->n_told = n ? (uint32_t)n : m->n_out;
  ask->told = hn_calloc(ask->n_told + 1, sizeof *ask->told);
  if (!ask->told) return hn_fail_memory(b->error, ask->n_told * sizeof *ask->told, "a request");
  for (uint32_t i = 0; i < ask->n_told && status == HONE_OK; i++) {
    if (n)
      status = read_output(b, m, json_array_get(list, i), binary, &ask->told[i]);
    else
      ask->told[i] = (hn_told){.output = i, .binary = binary};
    for (uint32_t k = 0; k < i && status == HONE_OK; k++) /* a few bytes would ask for any number of copies */
      if (ask->told[k].output == ask->told[i].output)
        status = bad(b, "output '%.80s' is named twice", m->out[ask->told[i].output].name);
  }
  return status;
}

static hone_status read_id(const body *b, hn_ask *ask) {
  const json_t *id = json_object_get(b->doc, "id");
  if (!id) return HONE_OK;
  if (!json_is_string(id)) return bad(b, "'id' is no string%s", "");
  ask->id = hn_strdup(json_string_value(id));
  return ask->id ? HONE_OK : hn_fail_memory(b->error, json_string_length(id), "a request");
}

/* ------------------------------------------------------------------ all of it */

static hone_status split(const hone_server_request *r, body *b) {
  b->text = r->body;
  b->size = r->size;
  if (!r->json_size) return HONE_OK;
  char *stop;
  const unsigned long long n = strtoull(r->json_size, &stop, 10);
  if (r->json_size[0] < '0' || r->json_size[0] > '9' || *stop || n > r->size) {
    hn_fail(b->error, HONE_ERROR_INPUT,
            "Inference-Header-Content-Length is no length of JSON in the request");
    hn_error_expected(b->error, "at most %zu", r->size);
    hn_error_got(b->error, "%.40s", r->json_size);
    return HONE_ERROR_INPUT;
  }
  b->size = (size_t)n;
  b->tail = b->text + n;
  b->tail_size = r->size - b->size;
  return HONE_OK;
}

hone_status hn_ask_read(const hn_served *m, const hone_server_request *request, hn_ask *out,
                        hone_error *error) {
  body b = {.error = error};
  *out = (hn_ask){.in = hn_calloc(m->n_in + 1, sizeof *out->in),
                  .out = hn_calloc(m->n_out + 1, sizeof *out->out)};
  hone_status status = out->in && out->out ? split(request, &b) : hn_fail_memory(error, 0, "a request");
  if (status == HONE_OK) status = read_json(&b);
  if (status == HONE_OK) status = read_id(&b, out);
  if (status == HONE_OK) status = read_outputs(&b, m, out);
  if (status == HONE_OK) status = read_inputs(&b, m, out);
  if (status == HONE_OK) status = read_samples(&b, m, out);
  json_decref(b.doc);
  hn_str_free(&b.rest);
  hn_vec_free(&b.spans);
  return status;
}

void hn_ask_free(const hn_served *m, hn_ask *ask) {
  for (uint32_t i = 0; ask->in && i < m->n_in; i++) hn_free(ask->in[i].data);
  for (uint32_t i = 0; ask->out && i < m->n_out; i++) hn_free(ask->out[i].data);
  hn_free(ask->in);
  hn_free(ask->out);
  hn_free(ask->told);
  hn_free(ask->id);
  *ask = (hn_ask){0};
}
