/* Open dimensions take the sizes that are usual for such inputs; where a model cannot work with those (a
 * window of 512 over 128 samples), others are tried before it is refused, and the error says what to give. */
#include "model/bind.h"

#include "base/error.h"
#include "base/os.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { NODES = 300000, FEWEST = 24, MOST_OPEN = 4 };
static const uint64_t MOST_NS = 10000000000u;

/* How many attempts inference may cost. */
static uint32_t attempts(const hn_model *m) {
  uint32_t n = NODES / (hn_model_nodes(m) + 1);
  return n < FEWEST ? FEWEST : n;
}

static uint32_t bits(uint32_t x) {
  uint32_t n = 0;
  for (; x; x &= x - 1) n++;
  return n;
}

/* Tries guesses behind the first: all open dimensions of that size, then some of them as long as the batch.
 * *out is the first model without a branch that cannot work, else the first that infers at all, else NULL. */
static hone_status search(hn_model *model, const hone_binding *bindings, uint32_t n, int64_t batch,
                          uint32_t open, hn_guess *found, hn_model **out, hone_error *error) {
  const uint64_t until = hn_now_ns() + MOST_NS; /* models made to be slow; others end by their count */
  uint32_t left = attempts(model), vary = open < MOST_OPEN ? open : MOST_OPEN;
  *out = NULL;
  for (uint32_t size = 0; size <= vary; size++) {
    if (size == open && *out) break; /* a length of one is the last resort */
    for (uint32_t ones = 0; ones < 1u << vary; ones++) {
      if (bits(ones) != size) continue;
      for (uint32_t k = 0; k < hn_guess_count(); k++) {
        hn_guess g = {.k = k, .ones = ones};
        hn_model *m = NULL;
        if ((!k && !ones) || (ones && size == open && k)) continue; /* tried; the size does not matter */
        if (!left-- || hn_now_ns() > until) return HONE_OK;
        hone_status status = hn_model_bind_once(model, bindings, n, batch, &g, &m, NULL, NULL);
        if (status == HONE_ERROR_MEMORY) {
          hn_model_destroy(*out);
          *out = NULL;
          return hn_fail_memory(error, 0, "binding shapes");
        }
        if (status != HONE_OK) continue;
        const bool whole = m->unfit_branches == 0;
        if (*out && !whole) {
          hn_model_destroy(m);
          continue;
        }
        hn_model_destroy(*out);
        *out = m;
        *found = g;
        if (whole) return HONE_OK;
      }
    }
  }
  return HONE_OK;
}

static void write_shape(const hone_tensor_desc *d, char *text, size_t size) {
  size_t at = 0;
  text[0] = 0;
  for (int32_t k = 0; k < d->rank && at < size; k++) {
    int len = snprintf(text + at, size - at, "%s%lld", k ? "x" : "", (long long)d->dim[k]);
    at += len > 0 ? (size_t)len : 0;
  }
}

/* The first input with an open dimension: *axis is the one to ask for, the last. */
static const hn_value *open_input(const hn_model *model, int32_t *axis) {
  const hn_value *best = NULL;
  for (size_t i = 0; i < model->graph->inputs.len; i++) {
    const hn_value *v = model->graph->inputs.ptr[i];
    if (v->constant) continue;
    for (int32_t k = v->desc.rank - 1; k >= 0; k--) {
      if (v->desc.dim[k] >= 0 || (best && !k)) continue; /* a batch is asked for last */
      if (k || !best) best = v, *axis = k;
      if (k) return best;
      break;
    }
  }
  return best;
}

/* Says which input and dimension to give, in the words of the command: `fits` has shapes that work, or NULL.
 * `given`: the caller gave it, so it is another one that is wanted. */
static void say(const hn_model *model, const hn_model *fits, bool given, hone_error *error) {
  int32_t axis = 0;
  const hn_value *v = open_input(model, &axis);
  char name[80] = "", shape[128] = "", word[104];
  if (!v || !error) return;
  const char *symbol = hn_model_symbol_name(model, v->desc.dim[axis]);
  if (symbol) snprintf(name, sizeof name, " ('%.60s')", symbol);
  const char *input = hn_text_shell_short(v->name, "NAME", word, sizeof word);
  if (fits) {
    const hn_value *w = hn_value_find(fits->graph, v->name);
    if (w) write_shape(&w->desc, shape, sizeof shape);
    hn_error_hint(error, "dimension %d%s of input '%.60s' does not fit; this would: --shape %s=%s", axis,
                  name, v->name, input, shape);
    return;
  }
  for (int32_t k = 0; k < v->desc.rank; k++) {
    const size_t at = strlen(shape);
    if (v->desc.dim[k] >= 0)
      snprintf(shape + at, sizeof shape - at, "%s%lld", k ? "x" : "", (long long)v->desc.dim[k]);
    else
      snprintf(shape + at, sizeof shape - at, "%s%s", k ? "x" : "", k == axis ? "N" : "1");
  }
  if (given)
    hn_error_hint(error, "dimension %d%s of input '%.60s' is open: another size may fit, --shape %s=%s", axis,
                  name, v->name, input, shape);
  else
    hn_error_hint(error,
                  "dimension %d%s of input '%.60s' is open, and none of the usual sizes fits: give it, "
                  "--shape %s=%s",
                  axis, name, v->name, input, shape);
}

hone_status hn_model_bind(hn_model *model, const hone_binding *bindings, uint32_t n, int64_t batch,
                          hn_model **out, hone_bound_shape *bound, hone_error *error) {
  hn_guess first = {0}, found = {0};
  hn_model *other = NULL;
  hone_status status = hn_model_bind_once(model, bindings, n, batch, &first, out, bound, error);
  const bool given = first.open == 0; /* by the caller, or there is nothing to give */
  if (status == HONE_OK ? given || !(*out)->unfit_branches : !first.contradicted) return status;
  if (!given) {
    hone_status searched = search(model, bindings, n, batch, first.open, &found, &other, error);
    if (searched != HONE_OK || !other || (status == HONE_OK && other->unfit_branches)) {
      hn_model_destroy(other);
      if (searched != HONE_OK) {
        if (status == HONE_OK) hn_model_destroy(*out);
        return searched;
      }
      if (status != HONE_OK) say(model, NULL, given, error);
      return status;
    }
    if (status == HONE_OK) hn_model_destroy(*out);
    hn_model_destroy(other);
    if (error) *error = (hone_error){0};
    return hn_model_bind_once(model, bindings, n, batch, &found, out, bound, error);
  }
  /* The caller's shapes do not fit: would others? */
  hn_guess any = {0};
  hn_model *plain = NULL;
  if (hn_model_bind_once(model, NULL, 0, batch, &any, &plain, NULL, NULL) != HONE_OK && any.contradicted)
    search(model, NULL, 0, batch, any.open, &found, &plain, NULL);
  if (plain || any.open) say(model, plain, given, error);
  hn_model_destroy(plain);
  return status;
}
