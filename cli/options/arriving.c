#include "cli/options/arriving.h"
#include "cli/options/preprocess.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hone_status wrong(hone_error *error, const char *option, const char *wants, const char *got) {
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what, "--%s wants %s", option, wants);
  snprintf(error->got, sizeof error->got, "'%.100s'", got);
  return HONE_ERROR_USAGE;
}

static hone_status read_options(const cli_args *args, hone_arriving *out, hone_error *error) {
  static const hone_dtype types[] = {HONE_DTYPE_U8, HONE_DTYPE_F16, HONE_DTYPE_BF16, HONE_DTYPE_F32};
  bool known = false;
  *out = (hone_arriving){.dtype = args->input_type ? HONE_DTYPE_NONE : HONE_DTYPE_F32};
  for (size_t i = 0; args->input_type && i < sizeof types / sizeof *types; i++)
    if (strcmp(args->input_type, hone_dtype_name(types[i])) == 0) out->dtype = types[i], known = true;
  if (args->input_type && !known) return wrong(error, "input-type", "u8, f16, bf16 or f32", args->input_type);
  const char *layout = args->input_layout;
  if (!layout) return HONE_OK;
  if (strcmp(layout, "nhwc") != 0 && strcmp(layout, "nchw") != 0)
    return wrong(error, "input-layout", "nchw or nhwc", layout);
  out->pixels = strcmp(layout, "nhwc") == 0 ? HONE_PIXELS_NHWC : HONE_PIXELS_NCHW;
  return HONE_OK;
}

/* An input that the options can mean. */
static bool meant(const hone_port *port, bool pictures) {
  const hone_tensor_desc *d = &port->desc;
  if (port->optional || !hone_dtype_is_float(d->dtype)) return false;
  if (!pictures) return true;
  if (d->rank != 3 && d->rank != 4) return false;
  const int64_t first = d->dim[d->rank - 3], last = d->dim[d->rank - 1];
  return first == 1 || first == 3 || last == 1 || last == 3;
}

static hone_status take_one(hone_model **model, const char *name, const hone_arriving *o, hone_error *error) {
  hone_model *taken = NULL;
  const hone_status status = hone_model_take(*model, name, o, &taken, error);
  if (status != HONE_OK) return status;
  hone_model_release(*model);
  *model = taken;
  return HONE_OK;
}

hone_status cli_take(const cli_args *args, hone_model **model, hone_error *error) {
  hone_arriving o;
  hone_preprocess by;
  hone_port port;
  if (!args->input_type && !args->input_layout) return HONE_OK;
  hone_status status = read_options(args, &o, error);
  if (status == HONE_OK && args->arriving)
    by = *args->arriving;
  else if (status == HONE_OK)
    status = cli_preprocess_said(args, &by, error);
  if (status != HONE_OK) return status;
  const bool bytes = o.dtype == HONE_DTYPE_U8, pictures = bytes || o.pixels != HONE_PIXELS_AUTO;
  if (bytes) o.preprocess = &by;
  uint32_t taken = 0;
  for (uint32_t i = 0; status == HONE_OK && hone_model_input(*model, i, &port); i++) {
    if (!meant(&port, pictures)) continue;
    char name[256];
    snprintf(name, sizeof name, "%s", port.name); /* its model goes */
    status = take_one(model, name, &o, error);
    taken++;
  }
  if (status != HONE_OK || taken) return status;
  if (!pictures) return take_one(model, NULL, &o, error); /* which says what is missing */
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what, "--%s: the model has no input for pictures",
           bytes ? "input-type u8" : "input-layout");
  snprintf(error->expected, sizeof error->expected,
           "an input of floats with 3 or 4 dimensions, of which 1 or 3 channels");
  return HONE_ERROR_USAGE;
}

/* Bytes of a tensor, and the filling behind them. */
static size_t room(const hone_tensor *t) {
  const int64_t bytes = hone_desc_bytes(&t->desc);
  return bytes > 0 ? ((size_t)bytes + 255) / 256 * 256 : 256;
}

hone_status cli_pin(hone_engine *engine, const hone_tensor *const *tensor, uint32_t n, cli_pinned *out,
                    hone_error *error) {
  size_t bytes = 0, at = 0;
  for (uint32_t i = 0; i < n; i++) bytes += room(tensor[i]);
  *out = (cli_pinned){.engine = engine, .n = n, .tensor = calloc(n + 1, sizeof *out->tensor)};
  if (!out->tensor) {
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory for inputs"};
    return HONE_ERROR_MEMORY;
  }
  const hone_status status = hone_memory_alloc(engine, HONE_MEMORY_PINNED, bytes, &out->memory, error);
  for (uint32_t i = 0; i < n && status == HONE_OK; at += room(tensor[i++])) {
    const int64_t own = hone_desc_bytes(&tensor[i]->desc);
    out->tensor[i] = (hone_tensor){tensor[i]->desc, (char *)out->memory + at};
    if (own > 0) memcpy(out->tensor[i].data, tensor[i]->data, (size_t)own);
  }
  return status;
}

void cli_unpin(cli_pinned *p) {
  hone_memory_free(p->engine, p->memory);
  free(p->tensor);
  *p = (cli_pinned){0};
}
