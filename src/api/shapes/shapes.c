/* Inputs of any shape: which plan serves them, and what is padded and cut. */
#include <hone/shapes.h>

#include "api/api.h"
#include "api/shapes/keep.h"
#include "api/shapes/rows.h"
#include "base/error.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { CAPACITY = 8 };

/* A dimension of an input: a profile's, or as the first plan has it. */
enum { FIXED = -1 };

struct hone_shapes {
  hone_model *model;
  hone_plan_options plan;
  uint32_t n_profiles, n_inputs;
  hone_size_profile profile[HONE_PROFILES]; /* symbol owned */
  char *symbol[HONE_PROFILES];
  hn_bucket_list buckets[HONE_PROFILES];
  bool pads[HONE_PROFILES];
  hone_reason why[HONE_PROFILES];
  uint32_t capacity;
  hn_keep *keep;
  const char *precision; /* of its plans; static */
  struct {
    const char *name;
    hone_tensor_desc desc; /* of the plan for opt */
    int32_t profile[HONE_MAX_RANK];
  } * input; /* [n_inputs] */
};

/* ------------------------------------------------------------------ making one */

static hone_status copy_profiles(hone_shapes *s, const hone_shapes_options *o, hone_error *error) {
  if (!o->n_profiles || !o->profiles) {
    hn_fail(error, HONE_ERROR_USAGE, "no dimension has a profile: all shapes are fixed");
    hn_error_hint(error,
                  "hone optimize M.onnx --open-batch -o N.onnx opens the first dimension of its inputs");
    return HONE_ERROR_USAGE;
  }
  if (o->n_profiles > HONE_PROFILES)
    return hn_fail(error, HONE_ERROR_USAGE, "%u dimensions have profiles, and %d may", o->n_profiles,
                   HONE_PROFILES);
  for (uint32_t i = 0; i < o->n_profiles; i++) {
    const hone_status status = hn_buckets_make(&o->profiles[i], &s->buckets[i], error);
    if (status != HONE_OK) return status;
    for (uint32_t k = 0; k < i; k++)
      if (strcmp(s->symbol[k], o->profiles[i].symbol) == 0)
        return hn_fail(error, HONE_ERROR_USAGE, "dimension '%.80s' has two profiles", s->symbol[k]);
    s->profile[i] = o->profiles[i];
    s->profile[i].symbol = s->symbol[i] = hn_strdup(o->profiles[i].symbol);
    s->n_profiles = i + 1;
    if (!s->symbol[i]) return hn_fail_memory(error, sizeof s->profile[i], "plans for shapes");
  }
  return HONE_OK;
}

static int32_t profile_of(const hone_shapes *s, const char *symbol) {
  for (uint32_t i = 0; symbol && i < s->n_profiles; i++)
    if (strcmp(s->symbol[i], symbol) == 0) return (int32_t)i;
  return FIXED;
}

/* The inputs and which of their dimensions a profile has; descriptors come with the first plan. */
static hone_status find_dimensions(hone_shapes *s, hone_error *error) {
  bool found[HONE_PROFILES] = {false};
  hone_port port;
  s->input = hn_calloc(hone_model_inputs(s->model) + 1, sizeof *s->input);
  if (!s->input) return hn_fail_memory(error, sizeof *s->input, "plans for shapes");
  for (uint32_t i = 0; hone_model_input(s->model, i, &port); i++) {
    if (port.optional) continue;
    for (int32_t k = 0; k < port.desc.rank; k++) {
      const int32_t p = profile_of(s, port.symbol[k]);
      s->input[s->n_inputs].profile[k] = p;
      if (p != FIXED) found[p] = true;
    }
    s->input[s->n_inputs++].name = port.name;
  }
  for (uint32_t i = 0; i < s->n_profiles; i++) {
    if (found[i]) continue;
    hn_fail(error, HONE_ERROR_USAGE, "no input has a symbolic dimension named '%.80s'", s->symbol[i]);
    hn_str names = {0};
    for (uint32_t j = 0; hone_model_input(s->model, j, &port); j++)
      for (int32_t k = 0; k < port.desc.rank; k++)
        if (port.symbol[k] && (!names.ptr || !strstr(names.ptr, port.symbol[k])))
          hn_str_printf(&names, "%s%.40s", names.len ? ", " : "", port.symbol[k]);
    if (names.len)
      hn_error_expected(error, "%s", names.ptr);
    else
      hn_error_hint(error, "all are fixed: hone optimize M.onnx --open-batch -o N.onnx opens the first");
    hn_str_free(&names);
    return HONE_ERROR_USAGE;
  }
  return HONE_OK;
}

static hn_sizes sizes_at(const hone_shapes *s, int which) {
  hn_sizes sizes = {{0}};
  for (uint32_t i = 0; i < s->n_profiles; i++)
    sizes.of[i] = which < 0 ? s->profile[i].min : which ? s->profile[i].max : s->profile[i].opt;
  return sizes;
}

/* What may be padded at all: from the smallest to the largest, with the others as they mostly are. */
static hone_status prove_profiles(hone_shapes *s, bool never, const char *precision, hone_error *error) {
  for (uint32_t i = 0; i < s->n_profiles; i++) {
    hn_sizes small = sizes_at(s, 0), large = small;
    small.of[i] = s->profile[i].min, large.of[i] = s->profile[i].max;
    bool proved = false;
    if (never)
      hn_refuse(&s->why[i], "padding is switched off");
    else if (small.of[i] == large.of[i])
      hn_refuse(&s->why[i], "it has one size");
    else if (hn_proofs_precision(precision, &s->why[i])) {
      const hone_status status =
          hn_proofs_get(hn_keep_proofs(s->keep), &small, &large, NULL, &proved, &s->why[i], error);
      if (status == HONE_ERROR_MEMORY) return status;
      if (status != HONE_OK) { /* one of the sizes does not fit the model: that is the caller's to know */
        hn_error_where(error, "dimension '%s' of %lld or %lld", s->symbol[i], (long long)small.of[i],
                       (long long)large.of[i]);
        return status;
      }
    }
    s->pads[i] = proved;
  }
  return HONE_OK;
}

static hone_status first_plan(hone_shapes *s, bool never_pad, hone_error *error) {
  const hn_sizes opt = sizes_at(s, 0);
  hn_kept *kept = NULL;
  hone_status status = hn_keep_take(s->keep, NULL, &opt, &kept, error);
  if (status != HONE_OK) return status;
  for (uint32_t i = 0; i < s->n_inputs && status == HONE_OK; i++) {
    const hone_tensor_desc *d = hone_plan_input_desc(kept->plan, i);
    if (!d || strcmp(hone_plan_input_name(kept->plan, i), s->input[i].name) != 0) {
      status = hn_fail(error, HONE_ERROR_INTERNAL, "the plan has other inputs than the model");
      break;
    }
    s->input[i].desc = *d;
    for (int32_t k = 0; k < d->rank && k < HONE_MAX_RANK; k++) {
      const int32_t p = s->input[i].profile[k];
      if (p != FIXED && d->dim[k] != opt.of[p]) {
        status = hn_fail(error, HONE_ERROR_USAGE,
                         "dimension '%.80s' has a profile, and a binding fixes it in input '%.80s'",
                         s->symbol[p], s->input[i].name);
        break;
      }
    }
  }
  s->precision = hone_plan_precision(kept->plan);
  if (status == HONE_OK) status = prove_profiles(s, never_pad, s->precision, error);
  hn_keep_back(s->keep, kept);
  return status;
}

hone_status hone_shapes_create(hone_engine *engine, hone_model *model, const hone_shapes_options *o,
                               hone_shapes **out, hone_error *error) {
  if (!engine || !model || !o || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_shapes_create needs an engine, a model, options and a place for the result");
  *out = NULL;
  if (o->plan && o->plan->preview)
    return hn_fail(error, HONE_ERROR_USAGE, "a preview cannot run: shapes need plans that can");
  const uint64_t lost = hn_mem_lost();
  hone_shapes *s = hn_calloc(1, sizeof *s);
  if (!s) return hn_fail_memory(error, sizeof *s, "plans for shapes");
  s->model = hn_model_retain(model);
  s->plan = o->plan ? *o->plan : (hone_plan_options){.level = -1};
  s->capacity = o->capacity ? o->capacity : CAPACITY;
  hone_status status = copy_profiles(s, o, error);
  if (status == HONE_OK) status = find_dimensions(s, error);
  const hn_keep_options keep = {.engine = engine,
                                .model = model,
                                .plan = &s->plan,
                                .symbol = s->symbol,
                                .pads = s->pads,
                                .n_profiles = s->n_profiles,
                                .capacity = s->capacity,
                                .max_bytes = o->max_bytes,
                                .background = o->background};
  if (status == HONE_OK) status = hn_keep_create(&keep, &s->keep, error);
  if (status == HONE_OK) status = first_plan(s, o->never_pad, error);
  status = hn_settle(status, lost, error);
  if (status == HONE_OK)
    *out = s;
  else
    hone_shapes_destroy(s);
  return status;
}

hn_keep *hn_shapes_keep(hone_shapes *s) { return s->keep; }
const char *hn_shapes_precision(const hone_shapes *s) { return s->precision; }

void hone_shapes_destroy(hone_shapes *s) {
  if (!s) return;
  hn_keep_destroy(s->keep);
  for (uint32_t i = 0; i < s->n_profiles; i++) hn_free(s->symbol[i]);
  hn_free(s->input);
  hn_model_destroy(s->model);
  hn_free(s);
}

/* ------------------------------------------------------------------ sizes of inputs */

static hone_status outside(const hone_shapes *s, uint32_t i, int32_t k, int64_t got, hone_error *error) {
  const int32_t p = s->input[i].profile[k];
  const char *name = s->input[i].name;
  if (p == FIXED) {
    hn_fail(error, HONE_ERROR_USAGE, "dimension %d of input '%.80s' is fixed", k, name);
    hn_error_expected(error, "%lld", (long long)s->input[i].desc.dim[k]);
  } else {
    hn_fail(error, HONE_ERROR_USAGE, "dimension %d ('%.60s') of input '%.80s' is outside of its profile", k,
            s->symbol[p], name);
    hn_error_expected(error, "%lld to %lld", (long long)s->profile[p].min, (long long)s->profile[p].max);
  }
  hn_error_got(error, "%lld", (long long)got);
  return HONE_ERROR_USAGE;
}

static hone_status sizes_of(const hone_shapes *s, const hone_tensor *const *in, hn_sizes *out,
                            hone_error *error) {
  const char *from[HONE_PROFILES] = {NULL};
  memset(out, 0, sizeof *out);
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    const hone_tensor_desc *want = &s->input[i].desc;
    if (!in || !in[i] || (!in[i]->data && hone_desc_count(&in[i]->desc) != 0))
      return hn_fail(error, HONE_ERROR_USAGE, "input '%.80s' was not given", s->input[i].name);
    const hone_tensor_desc *got = &in[i]->desc;
    if (got->dtype != want->dtype || got->rank != want->rank || got->layout != HONE_LAYOUT_ROW_MAJOR) {
      char expected[128], text[128];
      hn_fail(error, HONE_ERROR_USAGE, "input '%.80s' does not fit the model", s->input[i].name);
      hn_error_expected(error, "%s", hone_desc_format(want, expected, sizeof expected));
      hn_error_got(error, "%s", hone_desc_format(got, text, sizeof text));
      return HONE_ERROR_USAGE;
    }
    for (int32_t k = 0; k < want->rank; k++) {
      const int32_t p = s->input[i].profile[k];
      const int64_t n = got->dim[k];
      if (p == FIXED ? n != want->dim[k] : n < s->profile[p].min || n > s->profile[p].max)
        return outside(s, i, k, n, error);
      if (p == FIXED) continue;
      if (from[p] && out->of[p] != n) {
        hn_fail(error, HONE_ERROR_USAGE, "dimension '%.60s' has two sizes, in inputs '%.60s' and '%.60s'",
                s->symbol[p], from[p], s->input[i].name);
        hn_error_got(error, "%lld and %lld", (long long)out->of[p], (long long)n);
        return HONE_ERROR_USAGE;
      }
      from[p] = s->input[i].name, out->of[p] = n;
    }
  }
  return HONE_OK;
}

/* The sizes that are kept for these: buckets where padding is proved for this very pair. */
static hone_status target_of(hone_shapes *s, const hn_sizes *wanted, hn_sizes *target, hone_error *error) {
  bool proved = true;
  hone_reason why;
  *target = *wanted;
  for (uint32_t i = 0; i < s->n_profiles; i++)
    if (s->pads[i]) target->of[i] = hn_bucket_of(&s->buckets[i], wanted->of[i]);
  if (memcmp(target, wanted, sizeof *target) == 0) return HONE_OK;
  const hone_status status =
      hn_proofs_get(hn_keep_proofs(s->keep), wanted, target, NULL, &proved, &why, NULL);
  if (status == HONE_ERROR_MEMORY) return hn_fail_memory(error, 0, "what was proved of shapes");
  if (status != HONE_OK || !proved) *target = *wanted; /* the model may not take that size at all */
  return HONE_OK;
}

/* ------------------------------------------------------------------ padding and cutting */

static bool make_room(void **data, size_t *room, size_t bytes) {
  if (*room >= bytes && *data) return true;
  hn_free(*data);
  *data = hn_aligned(HN_MEM_ALIGN, bytes + 1);
  *room = *data ? bytes : 0;
  return *data != NULL;
}

/* Inputs as the plan wants them. */
static hone_status lengthen(hone_shapes_answer *l, const hone_tensor *const *in, hone_error *error) {
  for (uint32_t i = 0; i < hone_plan_inputs(l->kept->plan); i++) {
    const hone_tensor_desc *want = hone_plan_input_desc(l->kept->plan, i);
    l->in[i] = in[i];
    if (hone_desc_same_dims(&in[i]->desc, want)) continue;
    const size_t bytes = (size_t)hone_desc_bytes(want);
    hone_tensor *t = &l->longer[i];
    if (!make_room(&t->data, &l->longer_room[i], bytes))
      return hn_fail_memory(error, bytes, "a padded input");
    t->desc = hone_desc(want->dtype, want->rank, want->dim);
    hn_rows_fill(in[i], t);
    l->in[i] = t;
  }
  return HONE_OK;
}

/* Outputs without what padding added. */
static hone_status shorten(hone_shapes *s, hone_shapes_answer *l, const hn_sizes *wanted, hone_error *error) {
  const uint32_t values = hn_proofs_values(hn_keep_proofs(s->keep)), n_out = hone_plan_outputs(l->kept->plan);
  for (uint32_t i = 0; i < n_out; i++) {
    const hone_tensor *whole = hone_context_output(l->context, i);
    hone_tensor *t = &l->result[i];
    *t = *whole;
    bool shorter = false;
    for (uint32_t k = 0; k < s->n_profiles; k++) {
      const hn_pad *p = &l->map[k * values + s->n_inputs + i];
      if (p->kind != HN_PAD_ROWS) continue;
      t->desc.dim[p->axis] = p->each * wanted->of[k];
      shorter = true;
    }
    if (!shorter) continue;
    t->desc = hone_desc(t->desc.dtype, t->desc.rank, t->desc.dim);
    t->desc.quant = whole->desc.quant;
    if (hn_rows_prefix(&t->desc, &whole->desc)) continue;
    const size_t bytes = (size_t)hone_desc_bytes(&t->desc);
    if (!make_room(&l->cut[i], &l->cut_room[i], bytes)) return hn_fail_memory(error, bytes, "an output");
    t->data = l->cut[i];
    hn_rows_cut(whole, t);
  }
  return HONE_OK;
}

/* ------------------------------------------------------------------ running */

static hone_status run_on(hone_shapes *s, hone_shapes_answer *l, const hn_sizes *wanted,
                          const hone_tensor *const *in, const hone_run_options *o, hone_error *error) {
  hone_status status = HONE_OK;
  bool proved = true;
  hone_reason why;
  l->padded = memcmp(&l->kept->size, wanted, sizeof *wanted) != 0;
  if (l->padded)
    status = hn_proofs_get(hn_keep_proofs(s->keep), wanted, &l->kept->size, l->map, &proved, &why, error);
  else
    memset(l->map, 0, (size_t)s->n_profiles * hn_proofs_values(hn_keep_proofs(s->keep)) * sizeof *l->map);
  if (status == HONE_OK && !proved)
    status = hn_fail(error, HONE_ERROR_INTERNAL, "a plan was taken that does not serve: %s", why.text);
  if (status == HONE_OK) status = lengthen(l, in, error);
  if (status == HONE_OK) status = hone_context_run(l->context, l->in, o, error);
  if (status == HONE_OK) status = shorten(s, l, wanted, error);
  l->ran = status == HONE_OK;
  return status;
}

hone_status hone_shapes_run(hone_shapes *s, const hone_tensor *const *in, const hone_run_options *o,
                            hone_shapes_answer **out, hone_error *error) {
  if (!s || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_shapes_run needs shapes and a place for the answer");
  *out = NULL;
  const uint64_t lost = hn_mem_lost();
  hn_sizes wanted, target;
  hn_kept *kept = NULL;
  hone_shapes_answer *l = NULL;
  hone_status status = sizes_of(s, in, &wanted, error);
  if (status == HONE_OK) status = target_of(s, &wanted, &target, error);
  if (status == HONE_OK) status = hn_keep_take(s->keep, &wanted, &target, &kept, error);
  if (status == HONE_OK) status = hn_keep_lease(s->keep, kept, &l, error);
  if (status == HONE_OK) status = run_on(s, l, &wanted, in, o, error);
  status = hn_settle(status, lost, error);
  if (status == HONE_OK)
    *out = l;
  else if (l)
    hn_keep_return(l);
  return status;
}

const hone_tensor *hone_shapes_answer_output(const hone_shapes_answer *l, uint32_t i) {
  return l && i < hone_plan_outputs(l->kept->plan) ? &l->result[i] : NULL;
}

const hone_plan *hone_shapes_answer_plan(const hone_shapes_answer *l) { return l ? l->kept->plan : NULL; }
bool hone_shapes_answer_padded(const hone_shapes_answer *l) { return l && l->padded; }

void hone_shapes_answer_release(hone_shapes_answer *l) {
  if (l) hn_keep_return(l);
}

hone_status hone_shapes_acquire(hone_shapes *s, const int64_t *size, hone_context **out, hone_error *error) {
  if (!s || !size || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_shapes_acquire needs shapes, sizes and a place for the result");
  *out = NULL;
  const uint64_t lost = hn_mem_lost();
  hn_sizes wanted = {{0}};
  hn_kept *kept = NULL;
  hone_shapes_answer *l = NULL;
  for (uint32_t i = 0; i < s->n_profiles; i++) {
    wanted.of[i] = size[i];
    if (size[i] >= s->profile[i].min && size[i] <= s->profile[i].max) continue;
    hn_fail(error, HONE_ERROR_USAGE, "dimension '%.80s' is outside of its profile", s->symbol[i]);
    hn_error_expected(error, "%lld to %lld", (long long)s->profile[i].min, (long long)s->profile[i].max);
    hn_error_got(error, "%lld", (long long)size[i]);
    return HONE_ERROR_USAGE;
  }
  hone_status status = hn_keep_take(s->keep, NULL, &wanted, &kept, error);
  if (status == HONE_OK) status = hn_keep_lease(s->keep, kept, &l, error);
  status = hn_settle(status, lost, error);
  if (status == HONE_OK)
    *out = l->context;
  else if (l)
    hn_keep_return(l);
  return status;
}

void hone_shapes_release(hone_shapes *s, hone_context *context) {
  hone_shapes_answer *l = s && context ? hn_keep_find(s->keep, context) : NULL;
  if (l) hn_keep_return(l);
}

/* ------------------------------------------------------------------ what there is */

hone_status hone_shapes_prepare(hone_shapes *s, hone_error *error) {
  if (!s) return hn_fail(error, HONE_ERROR_USAGE, "hone_shapes_prepare needs shapes");
  const uint64_t lost = hn_mem_lost();
  uint32_t at[HONE_PROFILES] = {0}, made = 0;
  hone_status status = HONE_OK;
  for (bool more = true; more && made < s->capacity && status == HONE_OK; made++) {
    hn_sizes size = {{0}};
    hn_kept *kept = NULL;
    for (uint32_t i = 0; i < s->n_profiles; i++) size.of[i] = s->buckets[i].size[at[i]];
    status = hn_keep_take(s->keep, NULL, &size, &kept, error);
    if (status == HONE_OK) hn_keep_back(s->keep, kept);
    uint32_t i = 0;
    while (i < s->n_profiles && ++at[i] == s->buckets[i].n) at[i++] = 0;
    more = i < s->n_profiles;
  }
  return hn_settle(status, lost, error);
}

void hone_shapes_wait(hone_shapes *s) {
  if (s) hn_keep_wait(s->keep);
}

bool hone_shapes_pads(const hone_shapes *s, uint32_t i, const char **reason) {
  const bool known = s && i < s->n_profiles;
  if (reason) *reason = known && !s->pads[i] ? s->why[i].text : "";
  return known && s->pads[i];
}

uint32_t hone_shapes_buckets(const hone_shapes *s, uint32_t i, const int64_t **sizes) {
  const bool known = s && i < s->n_profiles;
  if (sizes) *sizes = known ? s->buckets[i].size : NULL;
  return known ? s->buckets[i].n : 0;
}

void hone_shapes_count(hone_shapes *s, hone_shapes_counts *out) {
  if (!out) return;
  *out = (hone_shapes_counts){0};
  if (s) hn_keep_count(s->keep, out);
}

/* Where the smallest input comes that is padded to this size. */
static double least_use(const hone_shapes *s, uint32_t i, int64_t size) {
  int64_t before = 0;
  if (!s->pads[i]) return 1;
  for (uint32_t k = 0; k < s->buckets[i].n && s->buckets[i].size[k] < size; k++)
    before = s->buckets[i].size[k];
  return before ? (double)(before + 1) / (double)size : 1;
}

bool hone_shapes_plan(hone_shapes *s, uint32_t i, hone_shape_plan *out) {
  if (!s || !out || !hn_keep_plan(s->keep, i, out)) return false;
  double use = 1;
  for (uint32_t k = 0; k < s->n_profiles; k++) use *= least_use(s, k, out->size[k]);
  out->most_waste_pct = (1 - use) * 100;
  return true;
}
