#include "model/bind.h"

#include "base/error.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What open dimensions are taken as: the first, and the rest in turn until one fits (hn_guess.k). */
enum { SIZES = 16 };
static const int64_t images[SIZES] = {224, 256, 320, 640, 512, 448, 416, 384,
                                      299, 128, 112, 96,  64,  32,  28,  1024};
static const int64_t lengths[SIZES] = {128,  512, 256, 1024, 64,   77,   32,  16,
                                       3000, 8,   4,   100,  2048, 4096, 197, 16000};
static const int64_t samples[SIZES] = {16000, 8000, 512, 256,   1024,  2048, 4096, 48000,
                                       480,   400,  160, 32000, 24000, 128,  64,   32};

uint32_t hn_guess_count(void) { return SIZES; }

/* Is the input a picture? Rank 4 floats or bytes with 1, 3 or 4 channels; *first is the first spatial
 * dimension. */
static bool picture(const hone_tensor_desc *d, int32_t *first) {
  if (d->rank != 4) return false;
  int64_t c1 = d->dim[1], c3 = d->dim[3];
  *first = c3 == 1 || c3 == 3 || c3 == 4 ? 1 : 2;
  return *first == 1 || c1 == 1 || c1 == 3 || c1 == 4 || c1 < 0;
}

static bool contains(const char *text, const char *const *words) {
  for (; words && text && *words; words++)
    for (const char *p = text; *p; p++)
      if (strncasecmp(p, *words, strlen(*words)) == 0) return true;
  return false;
}

/* A wave form: one number an instant, in the last dimension. */
static bool wave_shaped(const hone_tensor_desc *d, int32_t i) {
  return (!d->dtype || hone_dtype_is_float(d->dtype)) && d->rank <= 3 && i == d->rank - 1 &&
         (d->rank < 3 || d->dim[1] == 1);
}

static bool named_wave(const char *input, const char *symbol) {
  static const char *const waves[] = {"audio", "wav", "speech", "pcm", "signal", "samples", NULL};
  static const char *const others[] = {"feat", "mel", "spec", "embed", "mask", NULL};
  return (contains(input, waves) || contains(symbol, waves)) && !contains(input, others);
}

/* The size of dimension i of an input, which the model and the caller leave open. *vary: other sizes may be
 * tried. */
static int64_t default_dim(const hone_tensor_desc *d, int32_t i, const char *input, const char *symbol,
                           int64_t batch, uint32_t k, bool *vary) {
  static const char *const batches[] = {"batch", NULL};
  int32_t first;
  if (batch <= 0) batch = 1;
  *vary = true;
  if (wave_shaped(d, i) && (i > 0 || d->rank == 1) && named_wave(input, symbol)) return samples[k];
  if (i == 0 && d->rank == 1 && k > 0 && !contains(symbol, batches)) return lengths[k - 1];
  if (picture(d, &first) && i >= first && i < first + 2) return images[k];
  *vary = i == 0 ? d->rank == 1 : !picture(d, &first);
  if (i == 0 || contains(symbol, batches)) return *vary = *vary && i == 0, batch;
  if (picture(d, &first)) return 3;
  /* A float for each instant may be sound, too: its lengths are tried behind the first. */
  return k > 0 && wave_shaped(d, i) ? samples[k - 1] : lengths[k];
}

static hone_status apply(hn_model *m, hn_value *v, const hone_binding *b, int64_t *symbol_value,
                         hone_error *error) {
  hone_tensor_desc *d = &v->desc;
  char have[128];
  hone_desc_format(d, have, sizeof have);
  if (d->rank >= 0 && d->rank != b->rank) {
    hn_fail(error, HONE_ERROR_USAGE, "--shape gives input '%s' %d dimensions", v->name, b->rank);
    hn_error_expected(error, "%d, as in %s", d->rank, have);
    return HONE_ERROR_USAGE;
  }
  if (d->rank < 0) {
    d->rank = b->rank;
    for (int32_t i = 0; i < b->rank; i++) d->dim[i] = HONE_DIM_UNKNOWN;
  }
  for (int32_t i = 0; i < b->rank; i++) {
    if (b->dim[i] < 0)
      return hn_fail(error, HONE_ERROR_USAGE, "--shape of input '%s' has the dimension %lld", v->name,
                     (long long)b->dim[i]);
    if (d->dim[i] >= 0 && d->dim[i] != b->dim[i]) {
      hn_fail(error, HONE_ERROR_USAGE, "dimension %d of input '%s' is fixed to %lld by the model", i, v->name,
              (long long)d->dim[i]);
      hn_error_got(error, "%lld", (long long)b->dim[i]);
      return HONE_ERROR_USAGE;
    }
    if (d->dim[i] <= -2) {
      int64_t *known = &symbol_value[-2 - d->dim[i]];
      if (*known >= 0 && *known != b->dim[i]) {
        hn_fail(error, HONE_ERROR_USAGE, "dimension '%s' is given two values",
                hn_model_symbol_name(m, d->dim[i]));
        hn_error_got(error, "%lld and %lld", (long long)*known, (long long)b->dim[i]);
        return HONE_ERROR_USAGE;
      }
      *known = b->dim[i];
    }
    d->dim[i] = b->dim[i];
  }
  return HONE_OK;
}

hone_status hn_model_bind_once(hn_model *model, const hone_binding *bindings, uint32_t n, int64_t batch,
                               hn_guess *guess, hn_model **out, hone_bound_shape *bound, hone_error *error) {
  hn_model *m = NULL;
  int64_t *symbol = NULL;
  guess->open = 0;
  guess->contradicted = false;
  hone_status status = hn_model_clone(model, &m, error);
  if (status != HONE_OK) goto done;
  symbol = hn_malloc((m->symbols.len + 1) * sizeof *symbol);
  if (!symbol) {
    status = hn_fail_memory(error, m->symbols.len * sizeof *symbol, "binding shapes");
    goto done;
  }
  for (size_t i = 0; i < m->symbols.len; i++) symbol[i] = -1;
  for (uint32_t k = 0; k < n && status == HONE_OK; k++) {
    const hone_binding *b = &bindings[k];
    if (b->symbol) {
      size_t s = 0;
      while (s < m->symbols.len && strcmp(m->symbols.ptr[s], b->symbol) != 0) s++;
      if (s == m->symbols.len && !b->input)
        status = hn_fail(error, HONE_ERROR_USAGE,
                         "the model has no input and no symbolic dimension named '%s'", b->symbol);
      else if (s < m->symbols.len)
        symbol[s] = b->dim[0];
      continue;
    }
    hn_value *v = hn_map_get(&m->graph->by_name, b->input);
    if (!v || !v->is_input)
      status = hn_fail(error, HONE_ERROR_USAGE, "the model has no input named '%s'", b->input);
    else
      status = apply(m, v, b, symbol, error);
  }
  if (status != HONE_OK) goto done;
  uint32_t at = 0;
  for (size_t i = 0; i < m->graph->inputs.len; i++) {
    hn_value *v = m->graph->inputs.ptr[i];
    if (v->constant) continue;
    bool chosen = false;
    if (v->foreign) {
      status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "input '%s' is a map, or nested deeper than hone reads",
                       v->name);
      goto done;
    }
    if (v->desc.rank < 0) {
      status = hn_fail(error, HONE_ERROR_USAGE, "input '%s' has no declared rank", v->name);
      char word[104];
      hn_error_hint(error, "give its shape: --shape %s=1x3x224x224",
                    hn_text_shell_short(v->name, "NAME", word, sizeof word));
      goto done;
    }
    hone_tensor_desc declared = v->desc;
    for (int32_t k = 0; k < v->desc.rank; k++) {
      int64_t *d = &v->desc.dim[k];
      if (*d >= 0) continue;
      if (*d <= -2 && symbol[-2 - *d] >= 0) {
        *d = symbol[-2 - *d];
        continue;
      }
      bool vary;
      int64_t value = default_dim(&declared, k, v->name, hn_model_symbol_name(m, *d), batch, guess->k, &vary);
      if (vary && guess->open < 32 && guess->ones >> guess->open++ & 1) value = batch > 0 ? batch : 1;
      if (*d <= -2) symbol[-2 - *d] = value; /* the same symbol is the same size everywhere */
      *d = value;
      chosen = true;
    }
    v->desc = hone_desc(v->desc.dtype, v->desc.rank, v->desc.dim);
    if (hone_desc_bytes(&v->desc) < 0) {
      char text[128];
      status = hn_fail(error, HONE_ERROR_USAGE, "input '%s' would be too large: %s", v->name,
                       hone_desc_format(&v->desc, text, sizeof text));
      goto done;
    }
    if (bound) bound[at] = (hone_bound_shape){hn_value_find(model->graph, v->name)->name, v->desc, chosen};
    at++;
  }
  status = hn_model_infer(m, error);
  guess->contradicted = status == HONE_ERROR_INPUT;
done:
  hn_free(symbol);
  if (status == HONE_OK)
    *out = m;
  else
    hn_model_destroy(m);
  return status;
}
