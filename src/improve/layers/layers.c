/* hone_layers: two plans, pairs of their values, and groups of layers that fit into memory. */
#include "improve/layers/layers.h"

#include "base/error.h"
#include "model/bind.h"

enum { SAMPLES = 4 };
#define GROUP_BYTES ((uint64_t)256 << 20)

/* ---- groups */

/* The pairs from which v is made, through what no pair stands for. want: of its own producer's inputs. */
typedef struct search {
  hn_ly *q;
  const hn_plan *plan;
  bool quantized;
  uint8_t *visited;
} search;

static bool want_ancestors(search *s, const hn_value *from) {
  HN_VEC(const hn_value *) todo = {0};
  bool whole = hn_vec_push(&todo, from);
  memset(s->visited, 0, s->plan->model->next_value_id + 1u);
  while (whole && todo.len) {
    const hone_node *n = todo.ptr[--todo.len]->producer;
    for (uint32_t i = 0; n && whole && i < n->n_in; i++) {
      const hn_value *v = n->in[i];
      if (!v || v->constant || s->visited[v->id]) continue;
      s->visited[v->id] = 1;
      hn_layers_pair *p = s->quantized ? s->q->stand_in[v->id].pair : s->q->of_exact[v->id];
      if (p) p->wanted = true;
      /* Codes and what they are made from are one value: replacing one alone would do, but both may be read.
       */
      else
        whole = hn_vec_push(&todo, v);
    }
  }
  hn_vec_free(&todo);
  return whole;
}

/* Q and DQ of one value lie behind each other; the inputs of its layer lie before all of them. */
static bool want_inputs(search *s, const hn_layers_pair *p) {
  const hn_value *v = p->quantized;
  if (!s->quantized) return want_ancestors(s, p->exact);
  while (v->producer && v->producer->n_in && v->producer->in[0] &&
         s->q->stand_in[v->producer->in[0]->id].pair == p)
    v = v->producer->in[0];
  return want_ancestors(s, v);
}

static hone_status choose_wanted(hn_ly *q, hone_error *error) {
  search exact = {q, q->exact.plan, false, hn_calloc(q->exact.plan->model->next_value_id + 1u, 1)};
  search quantized = {q, q->quantized.plan, true, hn_calloc(q->quantized.plan->model->next_value_id + 1u, 1)};
  bool whole = exact.visited && quantized.visited;
  for (size_t i = 0; i < q->pairs.len; i++) q->pairs.ptr[i]->wanted = q->pairs.ptr[i]->group == q->group;
  for (size_t i = 0; whole && i < q->pairs.len; i++) {
    const hn_layers_pair *p = q->pairs.ptr[i];
    if (p->group == q->group) whole = want_inputs(&exact, p) && want_inputs(&quantized, p);
  }
  hn_free(exact.visited);
  hn_free(quantized.visited);
  return whole ? HONE_OK : hn_fail_memory(error, 0, "groups of layers");
}

/* A value is held twice: as it is, and as its layer makes it of codes. */
static void make_groups(hn_ly *q) {
  const uint64_t most = q->o->max_bytes ? q->o->max_bytes : GROUP_BYTES;
  uint64_t bytes = 0;
  for (size_t i = 0; i < q->pairs.len; i++) {
    hn_layers_pair *p = q->pairs.ptr[i];
    if (bytes && bytes + 2 * p->bytes > most) {
      q->groups++;
      bytes = 0;
    }
    p->group = q->groups;
    bytes += 2 * p->bytes;
  }
  q->groups++;
}

/* ---- the way through */

/* Where names are gone, steps are what lies in equal places. */
static hone_status find_pairs(hn_ly *q, hone_error *error) {
  hone_status status = hn_layers_match(q, false, error);
  if (status != HONE_OK || q->pairs.len > q->unmatched) return status;
  hn_layers_forget(q);
  q->by_place = true;
  status = hn_layers_match(q, true, error);
  if (status != HONE_OK || q->pairs.len) return status;
  hn_fail(error, HONE_ERROR_INPUT, "no value of the second model stands for one of the first");
  hn_error_expected(error, "a float model, then the same network in 8 bits");
  return HONE_ERROR_INPUT;
}

static hone_status run_all(hn_ly *q, hn_quantize_samples *samples, hone_error *error) {
  const uint32_t n = hn_quantize_samples_count(samples), total = n * q->groups;
  hone_status status = HONE_OK;
  for (q->group = 0; q->group < q->groups && status == HONE_OK; q->group++) {
    status = choose_wanted(q, error);
    for (uint32_t i = 0; i < n && status == HONE_OK; i++) {
      const hn_feed *feeds;
      if (q->o->progress && !q->o->progress(q->o->progress_arg, q->group * n + i, total))
        return hn_fail(error, HONE_ERROR_CANCELLED, "the comparison of layers was cancelled");
      q->sample = i;
      status = hn_quantize_samples_read(samples, i, &feeds, error);
      if (status == HONE_OK) /* random ones, which are the reader's own */
        status = hn_feeds_give((hn_feed *)feeds, q->exact.plan->n_inputs, q->o->given, error);
      if (status == HONE_OK) status = hn_layers_run(q, feeds, error);
    }
  }
  q->samples = n;
  return status;
}

static hone_status compare(hn_ly *q, hone_model *exact, hone_layers_report *out, hone_error *error) {
  const hone_layers_options *o = q->o;
  hn_model *bound = NULL;
  hn_quantize_samples *samples = NULL;
  if (o->data && o->given) return hn_fail(error, HONE_ERROR_USAGE, "hone_layers: both data and given inputs");
  hone_quantize_options set = {.calib = o->data ? o->data : "random",
                               .samples = o->samples ? o->samples
                                          : o->data  ? 0
                                                     : SAMPLES,
                               .seed = o->seed,
                               .preprocess = o->preprocess};
  hn_side_options side = {.level = o->level > 0 ? o->level : 2,
                          .threads = o->threads,
                          .bindings = o->bindings,
                          .n_bindings = o->n_bindings,
                          .batch = o->batch,
                          .keep_concats = true};
  hone_status status = hn_side_open(q->file, &side, &q->quantized, error);
  side.chains = HONE_CHAINS_NEVER; /* several layers in one step */
  if (status == HONE_OK) status = hn_side_open(exact, &side, &q->exact, error);
  if (status == HONE_OK) status = find_pairs(q, error);
  if (status == HONE_OK) status = hn_layers_choose_dumps(q, error);
  if (status == HONE_OK && hn_feeds_all_given(o->given, q->exact.plan->n_inputs)) set.samples = 1;
  if (status == HONE_OK)
    status = hn_model_bind(exact, o->bindings, o->n_bindings, o->batch, &bound, NULL, error);
  if (status == HONE_OK) status = hn_quantize_samples_open(&set, bound, q->exact.plan, &samples, error);
  if (status == HONE_OK) {
    make_groups(q);
    status = run_all(q, samples, error);
  }
  if (status == HONE_OK) status = hn_layers_report(q, out, error);
  hn_quantize_samples_close(samples);
  hn_model_destroy(bound);
  return status;
}

hone_status hone_layers(hone_model *exact, hone_model *quantized, const hone_layers_options *options,
                        hone_layers_report *out, hone_error *error) {
  static const hone_layers_options defaults = {0};
  if (!exact || !quantized || !out) return hn_fail(error, HONE_ERROR_USAGE, "hone_layers: NULL argument");
  *out = (hone_layers_report){.first = -1, .worst = -1};
  hn_ly *q = hn_calloc(1, sizeof *q);
  if (!q) return hn_fail_memory(error, sizeof *q, "layers");
  q->o = options ? options : &defaults;
  q->file = quantized;
  q->exact_file = exact;
  const hone_status status = compare(q, exact, out, error);
  hn_layers_forget(q);
  hn_side_close(&q->quantized);
  hn_side_close(&q->exact);
  out->impl = q;
  if (status != HONE_OK) hone_layers_report_free(out);
  return status;
}

void hone_layers_report_free(hone_layers_report *r) {
  hn_ly *q = r ? r->impl : NULL;
  if (q) hn_arena_free(&q->arena);
  hn_free(q);
  if (r) *r = (hone_layers_report){.first = -1, .worst = -1};
}
