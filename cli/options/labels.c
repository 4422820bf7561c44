/* Top-5 of a classifier's output with the names of a label file. */
#include "cli/options/labels.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A million names of 60 letters. */
enum { LABELS_MOST = 64 << 20 };

hone_status cli_labels_read(const char *path, cli_labels *out, hone_error *error) {
  *out = (cli_labels){0};
  char *text;
  size_t size;
  hone_status status = hone_file_read(path, LABELS_MOST, &text, &size, error);
  const char *end = status == HONE_OK ? text + size : NULL;
  for (char *line = text, *next; status == HONE_OK && line < end; line = next) {
    char *stop = memchr(line, '\n', (size_t)(end - line));
    size_t n = stop ? (size_t)(stop - line) : (size_t)(end - line);
    next = line + n + (stop != NULL);
    while (n && line[n - 1] == '\r') n--;
    char **p = realloc(out->name, (out->n + 1) * sizeof *p);
    if (p) out->name = p;
    if (!p || out->n >= 1000000 || !(p[out->n] = strndup(line, n))) {
      *error = (hone_error){.status = HONE_ERROR_INPUT, .what = "too many labels"};
      snprintf(error->where, sizeof error->where, "%.250s", path);
      status = HONE_ERROR_INPUT;
    } else {
      out->n++;
    }
  }
  hone_file_free(text);
  if (status != HONE_OK) cli_labels_free(out);
  return status;
}

void cli_labels_free(cli_labels *labels) {
  for (size_t i = 0; i < labels->n; i++) free(labels->name[i]);
  free(labels->name);
  *labels = (cli_labels){0};
}

/* Label files often start with "background", which the network has no output for. */
static const char *label_of(const cli_labels *labels, int64_t i, int64_t classes) {
  size_t k = (size_t)i + (labels->n == (size_t)classes + 1 ? 1 : 0);
  return k < labels->n ? labels->name[k] : "?";
}

/* Turns scores into probabilities unless they already are. */
static void probabilities(float *p, int64_t n) {
  double sum = 0, most = -INFINITY;
  bool already = true;
  for (int64_t i = 0; i < n; i++) {
    sum += p[i];
    already = already && p[i] >= 0 && p[i] <= 1;
    if (p[i] > most) most = p[i];
  }
  if (already && fabs(sum - 1) < 1e-2) return;
  sum = 0;
  for (int64_t i = 0; i < n; i++) sum += exp(p[i] - most);
  for (int64_t i = 0; i < n; i++) p[i] = (float)(exp(p[i] - most) / sum);
}

/* Names of other classes would be printed with great confidence. */
static void note_count(const cli_labels *labels, int64_t classes) {
  if (labels->n != (size_t)classes && labels->n != (size_t)classes + 1)
    cli_note("--labels: the file has %zu line%s, the output has %lld class%s", labels->n, cli_s(labels->n),
             (long long)classes, classes == 1 ? "" : "es");
}

json_t *cli_labels_top5(const cli_labels *labels, const hone_tensor *scores) {
  const hone_tensor_desc *d = &scores->desc;
  int64_t count = hone_desc_count(d), classes = 1;
  for (int32_t k = 1; k < d->rank; k++) classes *= d->dim[k];
  if (d->rank == 1) classes = d->dim[0];
  int axes = 0; /* a row of scores has one axis; what a detector has several of is not one score a class */
  for (int32_t k = d->rank > 1; k < d->rank; k++) axes += d->dim[k] > 1;
  if (d->dtype != HONE_DTYPE_F32 || classes < 2 || axes != 1 || count < classes) return NULL;
  note_count(labels, classes);
  float *p = malloc((size_t)classes * sizeof *p);
  json_t *rows = json_array();
  for (int64_t r = 0; p && r < count / classes; r++) {
    memcpy(p, (const float *)scores->data + r * classes, (size_t)classes * sizeof *p);
    probabilities(p, classes);
    json_t *row = json_array();
    for (int k = 0; k < 5 && k < classes; k++) {
      int64_t best = 0;
      for (int64_t i = 1; i < classes; i++)
        if (!(p[best] >= p[i])) best = i;
      json_array_append_new(row,
                            json_pack("{s:I, s:s, s:o}", "class", (json_int_t)best, "label",
                                      label_of(labels, best, classes), "probability", cli_real(p[best])));
      p[best] = -1;
    }
    json_array_append_new(rows, row);
  }
  free(p);
  return rows;
}

void cli_labels_print(const json_t *rows) {
  size_t r, k;
  json_t *row, *hit;
  json_array_foreach(rows, r, row) {
    if (json_array_size(rows) > 1) cli_print("picture %zu\n", r);
    json_array_foreach(row, k, hit) cli_print("%zu. %-40s %6.2f %%  (class %lld)\n", k + 1,
                                              json_string_value(json_object_get(hit, "label")),
                                              100 * json_real_value(json_object_get(hit, "probability")),
                                              (long long)json_integer_value(json_object_get(hit, "class")));
  }
}
