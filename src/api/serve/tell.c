/* Responses of models: results as numbers, bytes or classes, and what a model takes and gives. */
#include "api/serve/serve.h"
#include "base/half.h"
#include "base/text.h"
#include "model/ir/graph.h"
#include "model/ops/common/op.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Behind the text, or what follows it, a NUL ends. */
void hn_tell_text(hn_str *o, const char *text, size_t n) {
  hn_str_putc(o, '"');
  for (size_t i = 0; i < n;) {
    const unsigned char c = (unsigned char)text[i];
    const size_t whole = c < 0x80 ? 1 : hn_text_character(text + i);
    if (c == '"' || c == '\\')
      hn_str_printf(o, "\\%c", c);
    else if (c < 0x20 || c == 0x7f)
      hn_str_printf(o, "\\u%04x", c);
    else if (whole && whole <= n - i)
      hn_str_append(o, text + i, whole);
    else
      hn_str_puts(o, "\xef\xbf\xbd"); /* no UTF-8: the replacement character; as bytes it would be whole */
    i += whole && whole <= n - i ? whole : 1;
  }
  hn_str_putc(o, '"');
}

/* Errors say of which file they are before anything else. */
void hn_tell_error(const hn_served *m, const hone_error *error, hn_str *o) {
  hone_error e = *error;
  char text[1400];
  const size_t n = strnlen(m->model->path, sizeof e.where - 1);
  if (n && strncmp(e.where, m->model->path, n) == 0 && (!e.where[n] || e.where[n] == ':'))
    snprintf(e.where, sizeof e.where, "%.100s%s", m->name, error->where + n);
  hone_error_format(&e, text, sizeof text);
  hn_str_puts(o, "{\"error\":");
  hn_tell_text(o, text, strlen(text));
  hn_str_putc(o, '}');
}

static void member(hn_str *o, const char *before, const char *name, const char *text) {
  hn_str_printf(o, "%s\"%s\":", before, name);
  hn_tell_text(o, text, strlen(text));
}

/* ------------------------------------------------------------------ numbers */

static void floating(hn_str *o, double v, const char *format) {
  char word[40];
  if (!isfinite(v)) {
    hn_str_puts(o, isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
    return;
  }
  snprintf(word, sizeof word, format, v);
  char *comma = strchr(word, ','); /* of the program's locale */
  if (comma) *comma = '.';
  hn_str_puts(o, word);
}

static void element(hn_str *o, const hone_tensor *t, int64_t i) {
  switch (t->desc.dtype) {
  case HONE_DTYPE_F32: floating(o, (double)((const float *)t->data)[i], "%.9g"); break;
  case HONE_DTYPE_F64: floating(o, ((const double *)t->data)[i], "%.17g"); break;
  case HONE_DTYPE_F16: floating(o, (double)hn_f16_to_f32(((const uint16_t *)t->data)[i]), "%.5g"); break;
  case HONE_DTYPE_BF16: floating(o, (double)hn_bf16_to_f32(((const uint16_t *)t->data)[i]), "%.4g"); break;
  case HONE_DTYPE_BOOL: hn_str_puts(o, ((const uint8_t *)t->data)[i] ? "true" : "false"); break;
  case HONE_DTYPE_I64: hn_str_printf(o, "%" PRId64, ((const int64_t *)t->data)[i]); break;
  case HONE_DTYPE_U64: hn_str_printf(o, "%" PRIu64, ((const uint64_t *)t->data)[i]); break;
  case HONE_DTYPE_STRING: {
    const hone_string s = ((const hone_string *)t->data)[i];
    hn_tell_text(o, s.ptr, s.len);
    break;
  }
  default: hn_str_printf(o, "%.0f", hn_get_f64(t, i)); /* integers of at most 32 bits */
  }
}

static void shape(hn_str *o, const int64_t *dim, int32_t rank) {
  hn_str_puts(o, "\"shape\":[");
  for (int32_t k = 0; k < rank; k++) hn_str_printf(o, "%s%lld", k ? "," : "", (long long)dim[k]);
  hn_str_putc(o, ']');
}

/* ------------------------------------------------------------------ bytes */

static void put_text(hn_str *tail, const char *text, size_t n) {
  const uint32_t size = (uint32_t)n;
  hn_str_append(tail, (const char *)&size, sizeof size);
  if (n) hn_str_append(tail, text, n);
}

/* Returns how many. */
static size_t put_bytes(hn_str *tail, const hone_tensor *t) {
  const size_t before = tail->len;
  const int64_t count = hone_desc_count(&t->desc), bytes = hone_desc_bytes(&t->desc);
  const hone_string *s = t->data;
  if (t->desc.dtype != HONE_DTYPE_STRING) {
    if (bytes > 0) hn_str_append(tail, t->data, (size_t)bytes);
  } else {
    for (int64_t i = 0; i < count; i++) put_text(tail, s[i].ptr, s[i].len);
  }
  return tail->len - before;
}

/* ------------------------------------------------------------------ classes */

typedef struct scored {
  double score;
  int64_t at;
} scored;

static int by_score(const void *a, const void *b) {
  const scored *x = a, *y = b;
  const bool nan_x = isnan(x->score), nan_y = isnan(y->score);
  if (nan_x != nan_y) return nan_x ? 1 : -1;
  if (!nan_x && x->score != y->score) return x->score < y->score ? 1 : -1;
  return (x->at > y->at) - (x->at < y->at);
}

/* "0.93:281" of the largest elements of each sample, as texts. */
static bool classify(const hone_tensor *t, uint32_t classes, hn_str *texts, hn_str *lengths, int64_t dim[2]) {
  const int64_t count = hone_desc_count(&t->desc);
  const int64_t samples = t->desc.rank > 1 ? t->desc.dim[0] : 1, each = samples > 0 ? count / samples : 0;
  const int64_t most = each < classes ? each : classes;
  scored *row = hn_malloc((size_t)(each + 1) * sizeof *row);
  if (!row) return false;
  for (int64_t s = 0; s < samples; s++) {
    for (int64_t i = 0; i < each; i++) row[i] = (scored){hn_get_f64(t, s * each + i), i};
    qsort(row, (size_t)each, sizeof *row, by_score);
    for (int64_t i = 0; i < most; i++) {
      const size_t before = texts->len;
      floating(texts, row[i].score, "%.9g");
      hn_str_printf(texts, ":%lld", (long long)row[i].at);
      const size_t n = texts->len - before;
      hn_str_append(lengths, (const char *)&n, sizeof n);
    }
  }
  hn_free(row);
  dim[0] = samples, dim[1] = most;
  return !texts->failed && !lengths->failed;
}

static bool tell_classes(hn_str *o, hn_str *tail, const hone_tensor *t, const hn_told *told) {
  hn_str texts = {0}, lengths = {0};
  int64_t dim[2] = {0};
  const bool good = classify(t, told->classes, &texts, &lengths, dim);
  const size_t before = tail->len, n = lengths.len / sizeof(size_t);
  const bool ranked = t->desc.rank > 1;
  hn_str_puts(o, ",\"datatype\":\"BYTES\",");
  shape(o, ranked ? dim : dim + 1, ranked ? 2 : 1);
  if (!told->binary) hn_str_puts(o, ",\"data\":[");
  for (size_t i = 0, at = 0; good && i < n; i++) {
    const size_t length = ((const size_t *)(const void *)lengths.ptr)[i];
    if (told->binary) {
      put_text(tail, texts.ptr + at, length);
    } else {
      if (i) hn_str_putc(o, ',');
      hn_tell_text(o, texts.ptr + at, length);
    }
    at += length;
  }
  if (told->binary)
    hn_str_printf(o, ",\"parameters\":{\"binary_data_size\":%zu}", tail->len - before);
  else
    hn_str_putc(o, ']');
  hn_str_free(&texts);
  hn_str_free(&lengths);
  return good;
}

/* ------------------------------------------------------------------ responses */

static bool tell_output(const hn_served *m, const hone_tensor *t, const hn_told *told, hn_str *o,
                        hn_str *tail) {
  member(o, "{", "name", m->out[told->output].name);
  bool good = true;
  if (told->classes) {
    good = tell_classes(o, tail, t, told);
  } else {
    member(o, ",", "datatype", hn_served_datatype(t->desc.dtype));
    hn_str_putc(o, ',');
    shape(o, t->desc.dim, t->desc.rank);
    if (told->binary) {
      hn_str_printf(o, ",\"parameters\":{\"binary_data_size\":%zu}", put_bytes(tail, t));
    } else {
      const int64_t count = hone_desc_count(&t->desc);
      hn_str_puts(o, ",\"data\":[");
      for (int64_t i = 0; i < count; i++) {
        if (i) hn_str_putc(o, ',');
        element(o, t, i);
      }
      hn_str_putc(o, ']');
    }
  }
  hn_str_putc(o, '}');
  return good;
}

bool hn_tell_answer(const hn_served *m, const hn_ask *ask, hone_server_response *out) {
  hn_str o = {0}, tail = {0};
  bool good = true, binary = false;
  member(&o, "{", "model_name", m->name);
  member(&o, ",", "model_version", m->version);
  if (ask->id) member(&o, ",", "id", ask->id);
  hn_str_puts(&o, ",\"outputs\":[");
  for (uint32_t i = 0; i < ask->n_told && good; i++) {
    if (i) hn_str_putc(&o, ',');
    binary = binary || ask->told[i].binary;
    good = tell_output(m, &ask->out[ask->told[i].output], &ask->told[i], &o, &tail);
  }
  hn_str_puts(&o, "]}");
  const size_t json = o.len;
  if (tail.len) hn_str_append(&o, tail.ptr, tail.len);
  good = good && !o.failed && !tail.failed;
  hn_str_free(&tail);
  if (!good) {
    hn_str_free(&o);
    return false;
  }
  out->body = o.ptr;
  out->size = o.len;
  out->json_size = binary ? json : 0;
  out->content_type = binary ? "application/octet-stream" : "application/json";
  return true;
}

static void tell_ports(hn_str *o, const char *title, const hn_served_port *p, uint32_t n, bool inputs) {
  hn_str_printf(o, ",\"%s\":[", title);
  for (uint32_t i = 0; i < n; i++) {
    int64_t dim[HONE_MAX_RANK];
    const int32_t rank = p[i].rank > 0 ? p[i].rank : 0;
    for (int32_t k = 0; k < rank; k++) dim[k] = inputs && p[i].least[k] != p[i].most[k] ? -1 : p[i].most[k];
    member(o, i ? ",{" : "{", "name", p[i].name);
    member(o, ",", "datatype", hn_served_datatype(p[i].dtype));
    hn_str_putc(o, ',');
    shape(o, dim, rank);
    hn_str_putc(o, '}');
  }
  hn_str_putc(o, ']');
}

bool hn_tell_model(const hn_served *m, hn_str *o) {
  member(o, "{", "name", m->name);
  hn_str_puts(o, ",\"versions\":[");
  hn_tell_text(o, m->version, strlen(m->version));
  hn_str_puts(o, "],\"platform\":\"onnx_onnxv1\"");
  tell_ports(o, "inputs", m->in, m->n_in, true);
  tell_ports(o, "outputs", m->out, m->n_out, false);
  hn_str_putc(o, '}');
  return !o->failed;
}
