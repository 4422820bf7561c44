/* Loading models and turning --shape into bindings. */
#include "cli/options/shapes.h"
#include "cli/options/arriving.h"
#include "cli/options/options.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

hone_status cli_load(const cli_args *args, const char *path, hone_model **out, hone_error *error) {
  const hone_zoo_options zoo = {.batch = args->batch};
  hone_status status = strncmp(path, "zoo:", 4) != 0 ? hone_model_load(path, out, error)
                                                     : hone_zoo_build(path + 4, &zoo, out, error);
  if (status == HONE_OK && (status = cli_take(args, out, error)) != HONE_OK) {
    hone_model_release(*out);
    *out = NULL;
  }
  return status;
}

static hone_status usage(hone_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static hone_status usage(hone_error *error, const char *format, ...) {
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  va_list ap;
  va_start(ap, format);
  vsnprintf(error->what, sizeof error->what, format, ap);
  va_end(ap);
  return HONE_ERROR_USAGE;
}

/* "1x3x224x224" (also with commas) into b->dim. */
static bool parse_dims(const char *text, hone_binding *b) {
  for (b->rank = 0;;) {
    char *end;
    long long v = strtoll(text, &end, 10);
    if (end == text || v < 0 || v > 1000000000 || b->rank == HONE_MAX_RANK) return false;
    b->dim[b->rank++] = v;
    if (!*end) return true;
    if (*end != 'x' && *end != 'X' && *end != ',') return false;
    text = end + 1;
  }
}

/* Names an input when the model has one, else a symbol of its inputs. */
static hone_status bind_one(const hone_model *model, const char *text, hone_binding *b, hone_error *error) {
  const char *eq = strrchr(text, '=');
  *b = (hone_binding){0};
  if (!eq || eq == text || !parse_dims(eq + 1, b))
    return usage(error, "--shape wants NAME=1x3x224x224 or SYMBOL=4, got '%s'", text);
  size_t len = (size_t)(eq - text);
  const char *names[32];
  size_t n = 0;
  char name[256];
  snprintf(name, sizeof name, "%.*s", (int)len, text);
  for (uint32_t i = 0; i < hone_model_inputs(model); i++) {
    hone_port port;
    if (!hone_model_input(model, i, &port)) continue;
    if (strcmp(port.name, name) == 0) {
      b->input = port.name;
      return HONE_OK;
    }
    if (n < 32) names[n++] = port.name;
    for (int32_t k = 0; k < port.desc.rank; k++) {
      if (!port.symbol[k]) continue;
      if (n < 32) names[n++] = port.symbol[k];
      if (b->rank == 1 && strcmp(port.symbol[k], name) == 0) b->symbol = port.symbol[k];
    }
  }
  if (b->symbol) return HONE_OK;
  usage(error, "--shape: the model has no input or symbolic dimension '%s'", name);
  const char *near = cli_nearest(name, names, n);
  if (near)
    snprintf(error->hint, sizeof error->hint, "did you mean '%s'?", near);
  else if (n)
    snprintf(error->hint, sizeof error->hint, "its first input is '%s'", names[0]);
  return HONE_ERROR_USAGE;
}

hone_status cli_bindings(const cli_args *args, const hone_model *model, hone_binding **out, uint32_t *n,
                         hone_error *error) {
  *out = NULL;
  *n = 0;
  if (!args->shapes.n) return HONE_OK;
  hone_binding *b = calloc(args->shapes.n, sizeof *b);
  if (!b) {
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory"};
    return HONE_ERROR_MEMORY;
  }
  for (size_t i = 0; i < args->shapes.n; i++) {
    hone_status status = bind_one(model, args->shapes.item[i], &b[i], error);
    if (status != HONE_OK) {
      free(b);
      return status;
    }
  }
  *out = b;
  *n = (uint32_t)args->shapes.n;
  return HONE_OK;
}

json_t *cli_desc_json(const hone_tensor_desc *desc) {
  json_t *shape = json_array();
  for (int32_t k = 0; k < desc->rank; k++)
    json_array_append_new(shape, desc->dim[k] < 0 ? json_null() : json_integer(desc->dim[k]));
  return json_pack("{s:s, s:o}", "dtype", hone_dtype_name(desc->dtype), "shape", shape);
}

const char *cli_shape_word(const char *name, char *buf, size_t size) {
  return hone_text_shell(name, buf, size) < size ? buf : "NAME";
}

void cli_note_bound(const hone_bound_shape *bound, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    char text[128], word[300];
    if (bound[i].chosen)
      cli_note("input '%s': chose %s (--shape %s=... changes it)", bound[i].input,
               hone_desc_format(&bound[i].desc, text, sizeof text),
               cli_shape_word(bound[i].input, word, sizeof word));
  }
}

bool cli_open_batch(const hone_model *model) {
  hone_port port;
  for (uint32_t i = 0; hone_model_input(model, i, &port); i++)
    if (!port.optional && (port.desc.rank < 0 || (port.desc.rank > 0 && port.desc.dim[0] < 0))) return true;
  return false;
}
