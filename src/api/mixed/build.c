/* The model of a choice: 8 bits first, then 16 bits in the layers that have them. */
#include "api/mixed/mixed.h"

#include "base/error.h"

#include <string.h>

/* Names as globs that fit nothing else. */
typedef HN_VEC(const char *) globs;

static bool add_glob(hn_arena *arena, globs *list, const char *name) {
  char *text = HN_NEW_ARRAY(arena, char, 2 * strlen(name) + 1), *at = text;
  if (!text) return false;
  for (; *name; name++) {
    if (strchr("*?[]\\", *name)) *at++ = '\\';
    *at++ = *name;
  }
  return hn_vec_push(list, text);
}

static hone_mixed_type type_of(const hn_mixing *m, const hn_mix_layer *l) {
  const hn_mix_unit *u = l->unit >= 0 ? &m->unit[l->unit] : NULL;
  return u ? u->ladder[u->rung] : HONE_MIXED_F32;
}

/* The names of the layers that have this type, or with `others` that have another one. */
static bool names(const hn_mixing *m, hn_arena *arena, hone_mixed_type type, bool others, globs *out) {
  for (size_t l = 0; l < m->layers.len; l++) {
    const hn_mix_layer *layer = &m->layers.ptr[l];
    if (layer->unit < 0 || (type_of(m, layer) == type) == others) continue;
    if (!add_glob(arena, out, layer->name)) return false;
  }
  return true;
}

/* Ranges have been written by then: nothing is run again. */
static hone_status to_8_bits(hn_mixing *m, hn_arena *arena, hone_model **out, hone_error *error) {
  hone_quantize_options o = m->q;
  hone_quantize_report made = {0};
  globs skip = {0};
  bool good = names(m, arena, HONE_MIXED_INT8, true, &skip);
  for (uint32_t i = 0; i < m->q.n_skip; i++) good = good && hn_vec_push(&skip, m->q.skip[i]);
  o.skip = skip.ptr;
  o.n_skip = (uint32_t)skip.len;
  o.again = false;
  o.checks = 1;
  if (!o.equalize) o.calib = NULL, o.set = NULL;
  hone_status status = good ? hone_quantize(m->wide.model, &o, out, &made, error)
                            : hn_fail_memory(error, 0, "names of layers");
  hone_quantize_report_free(&made);
  hn_vec_free(&skip);
  return status;
}

static hone_status to_16_bits(hn_mixing *m, hn_arena *arena, hone_mixed_type type, hone_model **model,
                              hone_error *error) {
  globs only = {0};
  hone_quantize_report made = {0};
  hone_model *out = NULL;
  hone_status status =
      names(m, arena, type, false, &only) ? HONE_OK : hn_fail_memory(error, 0, "names of layers");
  if (status == HONE_OK && only.len) {
    const hone_quantize_options o = {.to = type == HONE_MIXED_BF16 ? HONE_QUANTIZE_BF16 : HONE_QUANTIZE_FP16,
                                     .only = only.ptr,
                                     .n_only = (uint32_t)only.len,
                                     .threads = m->q.threads,
                                     .batch = m->q.batch,
                                     .bindings = m->q.bindings,
                                     .n_bindings = m->q.n_bindings};
    status = hone_quantize(*model, &o, &out, &made, error);
    if (status == HONE_OK) {
      hone_model_release(*model);
      *model = out;
    }
    hone_quantize_report_free(&made);
  }
  hn_vec_free(&only);
  return status;
}

static bool any_of(const hn_mixing *m, hone_mixed_type type) {
  for (uint32_t u = 0; u < m->n_units; u++)
    if (m->unit[u].ladder[m->unit[u].rung] == type) return true;
  return false;
}

/* What follows others is in 8 bits only beside a product that is. */
static bool any_8_bits(const hn_mixing *m) {
  for (uint32_t u = 0; u < m->n_units; u++)
    if (!m->unit[u].follows && m->unit[u].ladder[m->unit[u].rung] == HONE_MIXED_INT8) return true;
  return false;
}

hone_status hn_mix_build(hn_mixing *m, hone_model **out, hone_error *error) {
  hn_arena arena = {0};
  hone_status status = HONE_OK;
  *out = NULL;
  if (any_8_bits(m))
    status = to_8_bits(m, &arena, out, error);
  else
    *out = hn_model_retain(m->wide.model);
  if (status == HONE_OK) m->report->models++;
  for (int t = HONE_MIXED_F16; t <= HONE_MIXED_BF16 && status == HONE_OK; t++)
    if (any_of(m, (hone_mixed_type)t)) status = to_16_bits(m, &arena, (hone_mixed_type)t, out, error);
  hn_arena_free(&arena);
  if (status == HONE_OK) return status;
  hone_model_release(*out);
  *out = NULL;
  return status;
}

hone_status hn_mix_uniform(hn_mixing *m, hone_mixed_type type, hone_model **out, hone_quantize_report *made,
                           hone_error *error) {
  hone_quantize_options o = m->q;
  hone_error none = {0};
  if (type != HONE_MIXED_INT8)
    o = (hone_quantize_options){.to = type == HONE_MIXED_BF16 ? HONE_QUANTIZE_BF16 : HONE_QUANTIZE_FP16,
                                .skip = m->q.skip,
                                .n_skip = m->q.n_skip,
                                .only = m->q.only,
                                .n_only = m->q.n_only,
                                .threads = m->q.threads,
                                .batch = m->q.batch,
                                .bindings = m->q.bindings,
                                .n_bindings = m->q.n_bindings};
  const hone_status status = hone_quantize(m->wide.model, &o, out, made, &none);
  m->report->models++;
  if (type != HONE_MIXED_INT8 && (status == HONE_ERROR_INPUT || status == HONE_ERROR_UNSUPPORTED))
    return HONE_OK;
  if (status != HONE_OK && error) *error = none;
  return status;
}
