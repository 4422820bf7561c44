#include "optimize/plan/slices.h"

#include "base/error.h"
#include "base/mem.h"
#include "model/bind.h"
#include "model/open_batch.h"
#include "model/padding.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ how many */

/* What other work leaves to this of the last cache, which the cores of a chip share. Of one on a mesh an
 * eighth is ours, but a core draws little from it, and less from memory behind it (Xeons with AMX: 30 and 16
 * GB/s a core). */
enum { LAST_CACHE_SHARE = 4 << 20 };
#define MESH_CACHE 30e9
#define MESH_MEMORY 16e9
/* A map that left a cache is fetched to be written and written, beside being read. */
#define WRITTEN_PASSES 2
/* Read, fetched to be written, written. */
#define COPIED_PASSES 3
/* What a step takes beside its work: to begin, and threads that wait for each other; and the least work of a
 * slice. */
#define STEP_SECONDS 6e-6
#define LEAST_SLICE_SECONDS 1e-3
/* Memory that a slice saves is worth more where it is a lot. */
#define A_LOT 128e6

/* Shares of the time of what is moved that show beside arithmetic, and what memory is worth. Weights come in
 * long rows that are fetched ahead; of maps on a mesh less shows in f32, which computes longer on each byte.
 * Fitted to four networks in f32 and bf16, cut into 1 to 8 slices, on Zen 5 and on Xeons with AMX
 * (docs/log/perf-log-slices.md). */
typedef struct shares {
  double far, near; /* of maps beyond all caches, beyond the threads' own */
  double weights;
  double memory; /* a plan's memory is worth this share of a run's time... */
  double a_lot;  /* ...times this where it is a lot */
} shares;

static const shares own_die = {1.2, 0.5, 0.5, 0.025, 4}, mesh_wide = {0.08, 0.08, 0.15, 0.05, 2},
                    mesh_narrow = {0.4, 0.4, 0.3, 0.05, 2};

/* What packing adds to weights goes with the size of maps: Winograd's larger tiles, whose weights are several
 * times the model's, pay on large ones. Each halving of a slice leaves about this share of it away (resnet50
 * and yolov3 in f32, batch 8 cut into 2 to 8, Zen 5). */
#define PACKING_LESS 0.2
#define PACKING_LEFT 0.6 /* what three halvings leave away; smaller slices were not found to leave more */
#define PADDED 1.25      /* more than this share of the weights in f32 is no padding to whole vectors */

typedef struct traffic {
  double weights, extra, predicted; /* bytes as packed; of them, what is beyond one f32 for each weight */
  double widest; /* bytes of the plan's own that a step reads and writes: about what activations take */
  double joined; /* bytes of results, which come together by copies */
  double again;  /* seconds of steps that no input reaches: every slice takes them anew... */
  double made;   /* ...and reads what they make, these bytes, as it reads weights */
  int64_t batch;
  double coded, products; /* seconds of steps with packed weights that read codes of 8 bits, of all of them */
  double *read;           /* [slots] bytes that steps read of it, views and parts of it included */
  double *blob;           /* [steps] bytes of each one's packed weights */
  bool *follows;          /* [slots] the inputs reach it; of a view or part, asked of its root */
} traffic;

/* The samples of a run, or 0 with a reason: the plan's inputs and outputs do not all begin with them. */
static int64_t batch_of(const hn_plan *p, hone_reason *why) {
  int64_t batch = 0;
  for (uint32_t i = 0; i < p->n_inputs; i++) {
    const hone_tensor_desc *d = &p->input_desc[i];
    if (!hone_dtype_is_tensor(d->dtype) || hn_dtype_points(d->dtype) || !hone_desc_known(d) || d->rank < 1 ||
        d->dim[0] < 1 || (i && d->dim[0] != batch)) {
      hn_refuse(why, "input '%.80s' does not begin with the batch", p->inputs[i]->name);
      return 0;
    }
    batch = d->dim[0];
  }
  for (uint32_t i = 0; i < p->n_outputs && batch; i++) {
    const hone_tensor_desc *d = &p->output_desc[i];
    if (!hone_dtype_is_tensor(d->dtype) || hn_dtype_points(d->dtype) || !hone_desc_known(d) || d->rank < 1 ||
        d->dim[0] % batch || p->slots.ptr[p->output_slot[i]].desc.dtype != d->dtype) {
      hn_refuse(why, "output '%.80s' does not begin with the batch", p->outputs[i]->name);
      return 0;
    }
  }
  if (!batch) hn_refuse(why, "the model has no inputs");
  return batch;
}

/* Only steps of tactics, in memory that is known beforehand. */
static bool is_plain(const hn_plan *p, hone_reason *why) {
  if (p->backend->asynchronous) return hn_refuse(why, "the device is no CPU");
  if (p->level < 2 || p->reference || p->separate) return hn_refuse(why, "that is for level 2 and 3");
  for (size_t i = 0; i < p->steps.len; i++)
    if (p->steps.ptr[i].kind != HN_STEP_TACTIC)
      return hn_refuse(why, "step '%.60s' (%.30s) has no kernel, or a shape that only the run knows",
                       p->steps.ptr[i].desc.name, p->steps.ptr[i].desc.anchor);
  for (size_t i = 0; i < p->slots.len; i++)
    if (p->slots.ptr[i].place == HN_PLACE_HEAP) return hn_refuse(why, "a shape is known in the run alone");
  return p->steps.len > 0 || hn_refuse(why, "the plan has no steps");
}

/* What callers lend, and the results, are there whole, however many slices there are. */
static bool is_own(const hn_plan *p, uint32_t slot) {
  const uint32_t root = hn_slot_root(p, slot);
  for (uint32_t i = 0; i < p->n_outputs; i++)
    if (hn_slot_root(p, p->output_slot[i]) == root) return false;
  return p->slots.ptr[root].place == HN_PLACE_ARENA;
}

static double tensor_bytes(const hone_tensor_desc *d) {
  const int64_t bytes = d->dtype == HONE_DTYPE_NONE ? 0 : hone_desc_bytes(d);
  return bytes > 0 ? (double)bytes : 0;
}

static bool follows(const hn_plan *p, const traffic *t, uint32_t slot) {
  return slot != HN_NO_SLOT && t->follows[hn_slot_root(p, slot)];
}

/* From the inputs through step s. */
static void follow(const hn_plan *p, const hn_step *s, traffic *t) {
  bool reached = false;
  for (uint32_t k = 0; k < s->desc.n_inputs; k++) reached = reached || follows(p, t, s->in[k]);
  for (uint32_t k = 0; k < s->desc.n_outputs; k++) {
    if (s->out[k] == HN_NO_SLOT) continue;
    if (reached)
      t->follows[hn_slot_root(p, s->out[k])] = true;
    else
      t->made += (double)p->slots.ptr[s->out[k]].bytes;
  }
  if (!reached) t->again += s->predicted_s;
}

static void count(const hn_plan *p, traffic *t) {
  for (uint32_t i = 0; i < p->slots.len; i++)
    if (p->slots.ptr[i].place == HN_PLACE_INPUT) t->follows[i] = true;
  for (size_t i = 0; i < p->steps.len; i++) {
    const hn_step *s = &p->steps.ptr[i];
    follow(p, s, t);
    hone_tactic_need need = {0};
    if (s->tactic->need && s->tactic->need(&s->desc, &p->machine, &need, NULL) != HONE_OK)
      need.blob_bytes = 0;
    t->blob[i] = (double)need.blob_bytes;
    t->weights += t->blob[i];
    double plain = 0;
    for (uint32_t k = 0; k < s->desc.n_inputs && need.blob_bytes; k++)
      if (s->desc.input[k].constant) plain += (double)hone_desc_count(&s->desc.input[k].desc) * sizeof(float);
    t->extra += fmax((double)need.blob_bytes - PADDED * plain, 0);
    t->predicted += s->predicted_s;
    if (need.blob_bytes && s->desc.n_inputs) {
      const hone_dtype x = s->desc.input[0].desc.dtype;
      t->products += s->predicted_s;
      t->coded += x == HONE_DTYPE_U8 || x == HONE_DTYPE_I8 ? s->predicted_s : 0;
    }
    double bytes = 0;
    for (uint32_t k = 0; k < s->desc.n_inputs; k++) {
      if (!follows(p, t, s->in[k])) continue;
      if (is_own(p, s->in[k])) bytes += tensor_bytes(&s->desc.input[k].desc);
      t->read[hn_slot_root(p, s->in[k])] += tensor_bytes(&s->desc.input[k].desc);
    }
    for (uint32_t k = 0; k < s->desc.n_outputs; k++)
      if (follows(p, t, s->out[k]) && is_own(p, s->out[k])) bytes += tensor_bytes(&s->desc.output[k].desc);
    t->widest = fmax(t->widest, bytes);
  }
  for (uint32_t i = 0; i < p->n_outputs; i++) t->joined += tensor_bytes(&p->output_desc[i]);
}

/* Bytes that go to and fro of the maps between steps of which a slice does not fit into `room`, for the whole
 * batch: what is written is read before, and what a Concat gathers is read by many. Of two that read, as
 * behind a residual connection, one finds it in a cache. */
static double too_large(const hn_plan *p, const traffic *t, double slices, double room) {
  double bytes = 0;
  for (uint32_t i = 0; i < p->slots.len; i++) {
    const hn_slot *s = &p->slots.ptr[i];
    if (s->alias != HN_NO_SLOT || !t->follows[i] || !is_own(p, i)) continue;
    if ((double)s->bytes > room * slices)
      bytes += WRITTEN_PASSES * (double)s->bytes + fmax(t->read[i] / 2, (double)s->bytes);
  }
  return bytes;
}

/* Products of codes compute as little on each byte as those of bf16. */
static const shares *shares_of(const hn_plan *p, const traffic *t) {
  if (!p->machine.mesh) return &own_die;
  return p->storage == HONE_DTYPE_F32 && 2 * t->coded <= t->products ? &mesh_wide : &mesh_narrow;
}

/* What the machine gives. */
typedef struct rates {
  double memory, cache; /* bytes a second of all threads */
  double own, room;     /* bytes of caches: of the threads' own, and with what they have of the last one */
} rates;

static rates rates_of(const hn_plan *p) {
  const hone_machine *m = &p->machine;
  const double threads = m->threads ? m->threads : 1;
  const bool mesh = p->machine.mesh;
  const size_t last = m->l3 / 8 < LAST_CACHE_SHARE || mesh ? m->l3 / 8 : LAST_CACHE_SHARE;
  rates r = {.own = (double)m->l2 * threads};
  r.room = r.own + (double)last;
  r.memory = mesh ? MESH_MEMORY * threads : m->dram_bytes > 0 ? m->dram_bytes : 25e9;
  r.cache = mesh ? MESH_CACHE * threads : m->cache_bytes > 0 ? m->cache_bytes : 40e9;
  return r;
}

/* Weights of one slice: the share that shows in any case, or what arithmetic is too short to hide. */
static double weights_shown(const hn_plan *p, const traffic *t, const rates *r, uint32_t slices) {
  const double share = shares_of(p, t)->weights;
  double shown = 0;
  if (!p->machine.mesh) return share * t->weights / r->memory;
  for (size_t i = 0; i < p->steps.len; i++) {
    const double all = t->blob[i] / r->memory;
    shown += fmax(share * all, all - p->steps.ptr[i].predicted_s / slices);
  }
  return shown;
}

/* What weights, maps and the beginnings of steps add to the arithmetic of a run in so many slices. */
static double seconds(const hn_plan *p, const traffic *t, uint32_t slices) {
  const rates r = rates_of(p);
  const shares *shown = shares_of(p, t);
  const double far = too_large(p, t, slices, r.room), near = too_large(p, t, slices, r.own) - far;
  const double maps = shown->far * far / r.memory + shown->near * near / r.cache;
  const double begin = STEP_SECONDS * (double)p->steps.len;
  const double again = t->again + shown->weights * t->made / r.memory;
  const double threads = p->machine.threads ? p->machine.threads : 1; /* one of which copies */
  const double join = slices > 1 ? COPIED_PASSES * t->joined * threads / r.memory : 0;
  return maps + join + (weights_shown(p, t, &r, slices) + again + begin) * slices;
}

/* The share of the plan's memory that so many slices save. */
static double saved(const traffic *t, uint32_t slices) {
  const double maps = t->widest * (1 - 1.0 / slices);
  return (maps + t->extra * fmin(PACKING_LESS * log2(slices), PACKING_LEFT)) /
         fmax(t->widest + t->weights, 1);
}

/* Seconds that it may cost. */
static double worth(const hn_plan *p, const traffic *t, uint32_t slices) {
  const shares *of = shares_of(p, t);
  const double share = saved(t, slices), lot = share * (t->widest + t->weights) > A_LOT ? of->a_lot : 1;
  return lot * of->memory * share * t->predicted;
}

/* The most slices that are as fast as any, or are worth their memory. */
static uint32_t best(const hn_plan *p, const traffic *t) {
  const uint32_t most = (uint32_t)fmin((double)t->batch, fmax(t->predicted / LEAST_SLICE_SECONDS, 1));
  double least = INFINITY;
  for (uint32_t n = 1; n <= most; n++)
    if ((uint32_t)t->batch % n == 0) least = fmin(least, seconds(p, t, n));
  uint32_t n = most;
  while (n > 1 && ((uint32_t)t->batch % n || seconds(p, t, n) > least + worth(p, t, n))) n--;
  return n;
}

uint32_t hn_plan_slices(const hn_plan *p, uint32_t wanted, hone_reason *why) {
  traffic t = {0};
  if (!is_plain(p, why) || !(t.batch = batch_of(p, why)) || t.batch > UINT32_MAX) return 1;
  if (wanted && t.batch % wanted == 0) return wanted;
  if (wanted) {
    hn_refuse(why, "a batch of %lld does not divide into equal parts", (long long)t.batch);
    return 1;
  }
  if (t.batch < 2) return 1;
  uint32_t n = 1;
  t.blob = hn_calloc(p->steps.len, sizeof *t.blob);
  t.follows = hn_calloc(p->slots.len, sizeof *t.follows);
  t.read = hn_calloc(p->slots.len, sizeof *t.read);
  if (t.blob && t.follows && t.read) {
    count(p, &t);
    n = best(p, &t);
  }
  hn_free(t.blob);
  hn_free(t.follows);
  hn_free(t.read);
  return n;
}

/* ------------------------------------------------------------------ whether */

/* The model with the inputs of `whole`, and dimension 0 of them divided. *out is NULL where it refuses that.
 */
static hone_status bind(hn_model *model, const hn_model *whole, uint32_t slices, hn_model **out,
                        hone_reason *why, hone_error *error) {
  const size_t n = whole->graph->inputs.len;
  hone_binding *b = hn_calloc(n + 1, sizeof *b);
  uint32_t count = 0;
  if (!b) return hn_fail_memory(error, n * sizeof *b, "the shapes of a slice");
  for (size_t i = 0; i < n; i++) {
    const hn_value *v = whole->graph->inputs.ptr[i];
    if (v->constant) continue;
    b[count] = (hone_binding){.input = v->name, .rank = v->desc.rank};
    memcpy(b[count].dim, v->desc.dim, sizeof b->dim);
    b[count++].dim[0] /= slices;
  }
  hone_error own = {0};
  const hone_status status = hn_model_bind(model, b, count, 0, out, NULL, &own);
  hn_free(b);
  if (status == HONE_OK || status == HONE_ERROR_MEMORY) {
    if (status != HONE_OK && error) *error = own;
    return status;
  }
  hn_refuse(why, "%.150s", own.what);
  return HONE_OK;
}

static bool leads(const hn_pad *p) { return p->kind == HN_PAD_ROWS && p->axis == 0; }

/* Every input and output is cut along dimension 0. */
static bool cut(const hn_model *m, const hn_pad *in, const hn_pad *out, hone_reason *why) {
  for (size_t i = 0; i < m->graph->inputs.len; i++)
    if (!m->graph->inputs.ptr[i]->constant && !leads(&in[i]))
      return hn_refuse(why, "input '%.80s' has no batch in front", m->graph->inputs.ptr[i]->name);
  for (size_t i = 0; i < m->graph->outputs.len; i++)
    if (!leads(&out[i]))
      return hn_refuse(why, "output '%.80s' has no batch in front", m->graph->outputs.ptr[i]->name);
  return true;
}

/* Is `part` what a slice of `whole` is, so that slices one after the other give what the whole gives? */
static hone_status prove(const hn_model *part, const hn_model *whole, uint32_t slices, bool *proved,
                         hone_reason *why, hone_error *error) {
  const size_t n_in = whole->graph->inputs.len, n_out = whole->graph->outputs.len;
  const hn_value *first = NULL;
  for (size_t i = 0; i < n_in && !first; i++)
    if (!whole->graph->inputs.ptr[i]->constant) first = whole->graph->inputs.ptr[i];
  if (!first || first->desc.rank < 1) return HONE_OK;
  hn_pad *in = hn_calloc(n_in + n_out + 1, sizeof *in);
  if (!in) return hn_fail_memory(error, n_in * sizeof *in, "the proof of slices");
  const int64_t all = first->desc.dim[0];
  const hone_status status =
      hn_prove_parts(part, whole, all / slices, all, in, in + n_in, proved, why, error);
  if (status == HONE_OK && *proved) *proved = cut(whole, in, in + n_in, why);
  hn_free(in);
  return status;
}

/* A file with a batch of its own takes others when it is opened: the slice and the whole of the model that it
 * becomes, or NULL. */
static hone_status bind_opened(hn_model *model, const hn_model *whole, uint32_t slices, hn_model **part,
                               hn_model **again, hone_reason *why, hone_error *error) {
  hn_model *opened = NULL;
  hone_error own = {0};
  hone_status status = hn_model_open_batch(model, &opened, &own);
  if (status == HONE_ERROR_MEMORY && error) *error = own;
  if (status == HONE_ERROR_UNSUPPORTED)
    hn_refuse(why, "%.150s", own.what); /* the file's batch is in a node */
  if (status != HONE_OK) return status == HONE_ERROR_MEMORY ? status : HONE_OK;
  if (status == HONE_OK) status = bind(opened, whole, slices, part, why, error);
  if (status == HONE_OK && *part) status = bind(opened, whole, 1, again, why, error);
  hn_model_destroy(opened);
  return status;
}

hone_status hn_slice_bind(hn_model *model, const hone_binding *bindings, uint32_t n, int64_t batch,
                          uint32_t *slices, hn_model **out, hone_reason *why, hone_error *error) {
  hn_model *whole = NULL, *part = NULL, *again = NULL;
  bool proved = false;
  *out = NULL;
  hone_status status = hn_model_bind(model, bindings, n, batch, &whole, NULL, error);
  if (status == HONE_OK) status = bind(model, whole, *slices, &part, why, error);
  const bool fixed = status == HONE_OK && !part;
  if (fixed) status = bind_opened(model, whole, *slices, &part, &again, why, error);
  if (status == HONE_OK && part && (again || !fixed))
    status = prove(part, fixed ? again : whole, *slices, &proved, why, error);
  if (!proved) *slices = 1;
  if (status == HONE_OK) *out = proved ? part : whole;
  if (*out != part) hn_model_destroy(part);
  if (*out != whole) hn_model_destroy(whole);
  hn_model_destroy(again);
  return status;
}

static bool multiply(hone_tensor_desc *d, uint32_t slices) {
  return !__builtin_mul_overflow(d->dim[0], (int64_t)slices, &d->dim[0]) && hone_desc_bytes(d) >= 0;
}

bool hn_plan_set_slices(hn_plan *p, uint32_t slices, hone_reason *why) {
  p->slices = slices;
  if (slices == 1) return true;
  if (!is_plain(p, why) || !batch_of(p, why)) return false;
  bool good = true;
  for (uint32_t i = 0; i < p->n_inputs; i++) good = good && multiply(&p->input_desc[i], slices);
  for (uint32_t i = 0; i < p->n_outputs; i++) good = good && multiply(&p->output_desc[i], slices);
  return good || hn_refuse(why, "so large a batch has no size");
}
