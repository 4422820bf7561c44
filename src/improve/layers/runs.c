/* One sample through one group of layers, in four runs:
 *   1. the float model: its values of the group, and those that layers of the group read, are kept;
 *   2. the quantised model as it is: what has come together;
 *   3. the float model once more, where every kept value is replaced by what its codes can say of it;
 *   4. the quantised model on the codes of the kept values: against 3, what each layer adds by itself. What
 * the codes of a value lose is thus an error of the layer that makes it, not of those that read it. */
#include "improve/layers/layers.h"

#include "base/error.h"
#include "improve/values.h"

static bool alike(hn_layers_pair *p, const hone_tensor *t) {
  if (!t || !t->data || p->unlike) return false;
  if (p->truth && !hone_desc_same_dims(&p->truth->desc, &t->desc)) p->unlike = true;
  return !p->unlike;
}

static hn_layers_pair *wanted_pair(const hn_ly *q, const hn_step *s, uint32_t i) {
  const hn_value *v = hn_value_of_step(q->exact.plan, s, i);
  hn_layers_pair *p = v ? q->of_exact[v->id] : NULL;
  return p && p->wanted ? p : NULL;
}

static void keep(hn_ly *q, hone_tensor **place, const hone_tensor *t) {
  if (*place) return;
  *place = hn_rows_of(t);
  q->failed |= !*place;
}

/* The float value as its codes say it. */
static void through_codes(const hn_layers_scale *scale, const hone_tensor *rows) {
  float *v = rows->data;
  for (int64_t i = 0, n = hone_desc_count(&rows->desc); scale->known && i < n; i++)
    v[i] = (float)hn_layers_decoded(scale, hn_layers_code(scale, (double)v[i]));
}

static void keep_truth(void *arg, const hn_step *s, hone_tensor *const *out) {
  hn_ly *q = arg;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    hn_layers_pair *p = wanted_pair(q, s, i);
    if (p && alike(p, out[i])) keep(q, &p->truth, out[i]);
  }
}

static void keep_fresh(void *arg, const hn_step *s, hone_tensor *const *out) {
  hn_ly *q = arg;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    hn_layers_pair *p = wanted_pair(q, s, i);
    if (!p || !p->truth || !alike(p, out[i])) continue;
    if (p->group == q->group) keep(q, &p->fresh, out[i]);
    hone_tensor *rows = hn_rows_of(p->truth);
    if (!rows) {
      q->failed = true;
      return;
    }
    through_codes(&p->scale, rows);
    hn_rows_put(rows, out[i]);
    hn_rows_free(rows);
  }
}

typedef bool (*observer)(hn_layers_pair *pair, const hone_tensor *got);

static void look(hn_ly *q, const hn_value *v, const hone_tensor *t, observer observe) {
  hn_layers_pair *p = v ? q->stand_in[v->id].pair : NULL;
  if (!p || p->quantized != v || p->group != q->group || !p->truth || !alike(p, t)) return;
  hone_tensor *rows = hn_rows_of(t);
  q->failed |= !rows || !observe(p, rows);
  if (!q->failed && observe == hn_layers_observe && q->dump_status == HONE_OK)
    q->dump_status = hn_layers_dump(q, p, rows, &q->dump_error);
  hn_rows_free(rows);
}

static void watch_whole(void *arg, const hn_step *s, hone_tensor *const *out) {
  hn_ly *q = arg;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++)
    look(q, hn_value_of_step(q->quantized.plan, s, i), out[i], hn_layers_observe);
}

/* The float model's value in the form in which `to` holds it. */
static void put_truth(hn_ly *q, const hn_layers_stand_in *in, hone_tensor *to) {
  const bool codes = to->desc.dtype != HONE_DTYPE_F32;
  if (codes && !in->scale.known) return;
  hone_tensor *rows = hn_rows_of(to);
  if (!rows) {
    q->failed = true;
    return;
  }
  const float *truth = in->pair->truth->data;
  const int64_t n = hone_desc_count(&rows->desc);
  if (codes) {
    for (int64_t i = 0; i < n; i++) /* both types of codes keep their low 8 bits */
      ((uint8_t *)rows->data)[i] = (uint8_t)(int32_t)hn_layers_code(&in->scale, (double)truth[i]);
  } else {
    memcpy(rows->data, truth, (size_t)n * sizeof(float));
    through_codes(in->scale.known ? &in->scale : &in->pair->scale, rows);
  }
  hn_rows_put(rows, to);
  hn_rows_free(rows);
}

static void watch_own(void *arg, const hn_step *s, hone_tensor *const *out) {
  hn_ly *q = arg;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    const hn_value *v = hn_value_of_step(q->quantized.plan, s, i);
    const hn_layers_stand_in *in = v ? &q->stand_in[v->id] : NULL;
    if (!in || !in->pair) continue;
    if (in->pair->fresh && in->pair->quantized == v) {
      look(q, v, out[i], hn_layers_observe_own);
      in->pair->judged = true;
    }
    /* A form of the value that comes before the one that is judged must reach it as it is. */
    const bool early = in->pair->group == q->group && !in->pair->judged;
    if (!early && in->pair->wanted && in->pair->truth && alike(in->pair, out[i])) put_truth(q, in, out[i]);
  }
}

static hone_status watched(hn_ly *q, hn_side *side, const hn_feed *feeds, hn_step_watch watch, bool writes,
                           hone_error *error) {
  hn_context_watch(side->context, watch, q, writes);
  hone_status status = hn_side_run(side, feeds, q->exact.plan->n_inputs, error);
  hn_context_watch(side->context, NULL, NULL, false);
  if (status == HONE_OK && q->failed) status = hn_fail_memory(error, 0, "the values of some layers");
  if (status == HONE_OK && q->dump_status != HONE_OK) {
    if (error) *error = q->dump_error;
    status = q->dump_status;
  }
  return status;
}

/* The inputs of the model are values like all others; fed: a copy for the third run. */
static hone_status take_inputs(hn_ly *q, const hn_feed *feeds, hn_feed *fed, hone_error *error) {
  for (uint32_t i = 0; i < q->exact.plan->n_inputs; i++) {
    hn_layers_pair *p = q->of_exact[q->exact.plan->inputs[i]->id];
    fed[i] = feeds[i];
    if (!p || !p->wanted || !alike(p, &feeds[i].data.tensor)) continue;
    keep(q, &p->truth, &feeds[i].data.tensor);
    keep(q, &p->fresh, &feeds[i].data.tensor);
    hone_tensor *rows = hn_rows_of(&feeds[i].data.tensor);
    if (!rows || q->failed) {
      hn_rows_free(rows);
      return hn_fail_memory(error, 0, "inputs");
    }
    through_codes(&p->scale, rows);
    fed[i].data.tensor = *rows;
    hn_free(rows); /* its elements are the copy's now */
  }
  return HONE_OK;
}

static void drop_inputs(const hn_ly *q, const hn_feed *feeds, hn_feed *fed) {
  for (uint32_t i = 0; i < q->exact.plan->n_inputs; i++)
    if (fed[i].data.tensor.data != feeds[i].data.tensor.data) hn_free(fed[i].data.tensor.data);
  hn_free(fed);
}

hone_status hn_layers_run(hn_ly *q, const hn_feed *feeds, hone_error *error) {
  const uint32_t n = q->exact.plan->n_inputs;
  hn_feed *fed = hn_calloc(n + 1u, sizeof *fed);
  if (!fed) return hn_fail_memory(error, n * sizeof *fed, "inputs");
  memcpy(fed, feeds, n * sizeof *fed);
  hone_status status = take_inputs(q, feeds, fed, error);
  if (status == HONE_OK) status = watched(q, &q->exact, feeds, keep_truth, false, error);
  if (status == HONE_OK) status = watched(q, &q->quantized, feeds, watch_whole, false, error);
  if (status == HONE_OK) status = watched(q, &q->exact, fed, keep_fresh, true, error);
  if (status == HONE_OK) status = watched(q, &q->quantized, feeds, watch_own, true, error);
  drop_inputs(q, feeds, fed);
  for (size_t i = 0; i < q->pairs.len; i++) {
    hn_rows_free(q->pairs.ptr[i]->truth);
    hn_rows_free(q->pairs.ptr[i]->fresh);
    q->pairs.ptr[i]->truth = q->pairs.ptr[i]->fresh = NULL;
    q->pairs.ptr[i]->judged = false;
  }
  return status;
}
