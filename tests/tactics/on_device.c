/* check_tactics --device: the same cases through every tactic of an accelerator, in every storage type (f32,
 * f16, bf16, with inputs that are exact in it) and layout, as lowering would give them: channels-last tensors
 * have a pitch of whole 16 bytes with zeros behind the channels, or are parts of wider pixels (layout w, what
 * a plan makes of the inputs of a Concat). Every step is captured and launched as a segment, which is how
 * plans run. What was not written is NaN. */
#include "skipped.h"
#include "tactic_case.h"

#include "base/mem.h"
#include "optimize/step/anchor.h"
#include "optimize/step/tactics.h"
#include "tactics/chain_case.h"
#include "tactics/device_step.h"
#include "tactics/with_epilogue.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 256 };
static const unsigned char canary = 0xc5;

typedef struct device_run {
  device_place place;
  const hn_listing *tactics;
  const device_check *o;
  int cases, runs, failures, taken;
  uint32_t units;
  unsigned char *reached; /* by tactic: bits of the storage types in which a case was taken */
  uint32_t *seen;         /* thin; by tactic: bits of what it has run in (is_new) */
  unsigned char *in_case; /* ... of this case's layouts */
  hone_dtype storage;
  int variant; /* of epilogues */
  with_epilogue epilogue;
} device_run;

static const char layouts[] =
    "rcmnwxyi"; /* x, y: only what is read or written is parts; i: an image as input */
enum { LAYOUTS = sizeof layouts - 1 };

/* ---------------------------------------------------------------- elements */

static float as_float(const void *p, hone_dtype t) {
  if (t == HONE_DTYPE_F32) {
    float f;
    memcpy(&f, p, 4);
    return f;
  }
  uint16_t h;
  memcpy(&h, p, 2);
  if (t == HONE_DTYPE_BF16) {
    const uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
  }
  _Float16 f;
  memcpy(&f, &h, 2);
  return (float)f;
}

static void from_float(void *p, hone_dtype t, float x) {
  if (t == HONE_DTYPE_F32) {
    memcpy(p, &x, 4);
  } else if (t == HONE_DTYPE_BF16) {
    uint32_t u;
    memcpy(&u, &x, 4);
    const uint16_t h = isnan(x) ? 0x7fff : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
    memcpy(p, &h, 2);
  } else {
    const _Float16 h = (_Float16)x;
    memcpy(p, &h, 2);
  }
}

/* A number as that type stores it: the largest f32 is infinite in 16 bits. */
static float rounded(float x, hone_dtype storage) {
  unsigned char bits[4];
  from_float(bits, storage, x);
  return as_float(bits, storage);
}

static void round_inputs(one_case *c, hone_dtype storage) {
  for (uint32_t i = 0; i < c->n_in; i++) {
    if (!c->present[i] || c->constant[i] || c->in[i].desc.dtype != HONE_DTYPE_F32) continue;
    const int64_t n = hone_desc_count(&c->in[i].desc);
    float *x = c->in[i].data;
    for (int64_t k = 0; k < n; k++) x[k] = rounded(x[k], storage);
  }
}

/* Whether the tensor became a part of wider pixels: whole vectors of them, with others behind. */
static bool set_device_layout(hone_tensor_desc *d, char layout, bool output) {
  d->device = 1;
  if (layout == 'x' || layout == 'y') layout = (layout == 'x') == output ? 'r' : 'w';
  set_layout(d, layout == 'w' || layout == 'i' ? 'c' : layout, output);
  if (d->layout != HONE_LAYOUT_CHANNELS_LAST) return false;
  const int64_t vector = 16 / (int64_t)hone_dtype_size(d->dtype);
  const bool part = layout == 'w' && d->dim[1] % vector == 0 && hone_desc_count(d) > 0;
  if (layout == 'i' && !output && d->dim[1] <= 4 && vector == 8) { /* an image (plan/images.c) */
    hone_desc_set_layout(d, HONE_LAYOUT_CHANNELS_LAST, 4);
    return false;
  }
  hone_desc_set_layout(d, HONE_LAYOUT_CHANNELS_LAST,
                       part ? d->dim[1] + 3 * vector : (d->dim[1] + vector - 1) / vector * vector);
  if (part) d->channel_pitch = d->dim[1];
  return part;
}

static bool is_part(const hone_tensor_desc *d) {
  hone_tensor_desc dense = *d;
  if (d->layout != HONE_LAYOUT_CHANNELS_LAST) return false;
  hone_desc_set_layout(&dense, d->layout, d->channel_pitch);
  return memcmp(dense.stride, d->stride, (size_t)d->rank * sizeof *d->stride) != 0;
}

/* Parts begin one vector into their memory: no tactic may count on more. */
static size_t begin_of(const hone_tensor_desc *d) { return is_part(d) ? 16 : 0; }

static size_t memory_of(const hone_tensor_desc *d) {
  int64_t last = 0;
  if (!is_part(d)) return (size_t)hone_desc_bytes(d);
  for (int32_t i = 0; i < d->rank; i++) last += (d->dim[i] - 1) * d->stride[i];
  return begin_of(d) + (size_t)(last + 1) * hone_dtype_size(d->dtype) + 32;
}

/* ---------------------------------------------------------------- memory: margin, bytes, margin */

typedef struct buffer {
  unsigned char *host, *device; /* of the bytes, behind the margin */
  size_t bytes;
} buffer;

static buffer make(device_run *r, size_t bytes, unsigned char fill) {
  buffer b = {.bytes = hn_round_up(bytes, 64)};
  b.host = hn_aligned(64, b.bytes + 2 * MARGIN);
  b.device = r->place.backend->alloc(r->place.device, b.bytes + 2 * MARGIN);
  if (!b.host || !b.device) die("no memory", "device");
  memset(b.host, canary, b.bytes + 2 * MARGIN);
  memset(b.host + MARGIN, fill, b.bytes);
  b.host += MARGIN, b.device += MARGIN;
  return b;
}

static void drop(device_run *r, buffer *b) {
  if (!b->host) return;
  r->place.backend->free(r->place.device, b->device - MARGIN);
  hn_free(b->host - MARGIN);
}

static hone_status send(device_run *r, const buffer *b, hone_error *error) {
  return r->place.backend->copy(r->place.device, r->place.queue, b->device - MARGIN, b->host - MARGIN,
                                b->bytes + 2 * MARGIN, error);
}

static hone_status fetch(device_run *r, const buffer *b, hone_error *error) {
  return r->place.backend->copy(r->place.device, r->place.queue, b->host - MARGIN, b->device - MARGIN,
                                b->bytes + 2 * MARGIN, error);
}

static bool intact(const buffer *b) {
  for (size_t i = 0; i < MARGIN; i++)
    if (b->host[-1 - (ptrdiff_t)i] != canary || b->host[b->bytes + i] != canary) return false;
  return true;
}

/* An activation in the step's type and layout; zeros behind the channels. */
static void put_input(const hone_tensor *from, const hone_tensor_desc *to, unsigned char *data) {
  if (!is_part(to)) memset(data, 0, (size_t)hone_desc_bytes(to));
  if (from->desc.dtype == to->dtype) {
    copy_in(from, to, data);
    return;
  }
  const int64_t n = hone_desc_count(to);
  const size_t size = hone_dtype_size(to->dtype);
  walk w = {{0}, 0};
  for (int64_t i = 0; i < n; i++)
    from_float(data + (size_t)next_offset(&w, to) * size, to->dtype, ((const float *)from->data)[i]);
}

/* ---------------------------------------------------------------- comparing */

static void fail(device_run *r, const one_case *c, const hone_tactic_desc *t, char layout, const char *what) {
  printf("FAIL %s [%s, layout %c, stored %s, %u epilogues, first %d]: %s\n", c->line, t->name, layout,
         hone_dtype_name(r->storage), r->epilogue.n, (int)r->epilogue.list[0].act, what);
  r->failures++;
}

/* Weights are rounded to the storage type, too; sums are f32. */
static double bound_of(hone_dtype storage, hone_math math) {
  if (math == HONE_MATH_FP8) return 6e-2;
  if (storage == HONE_DTYPE_BF16) return 3e-2;
  if (storage == HONE_DTYPE_F16 || math >= HONE_MATH_TF32) return 4e-3;
  return 3e-5;
}

/* f64: other orders of operations and other functions than the host's differ in the last places. */
static bool close_f64(const one_case *c, const unsigned char *g, const hone_tensor *w, int64_t i) {
  double got, want = ((const double *)w->data)[i];
  memcpy(&got, g, sizeof got);
  return (isnan(got) && isnan(want)) || got == want ||
         (!c->moves && fabs(got - want) <= 1e-12 * fmax(1, fabs(want)));
}

/* Devices have one NaN of 16 bits where processors keep its payload. */
static bool both_nan(const void *a, const void *b, hone_dtype t) {
  return (t == HONE_DTYPE_F16 || t == HONE_DTYPE_BF16) && isnan(as_float(a, t)) && isnan(as_float(b, t));
}

static bool compare(const one_case *c, uint32_t k, const hone_tensor_desc *d, const unsigned char *data,
                    double bound, double range, char *text, size_t text_size) {
  const hone_tensor *w = &c->want[k];
  const size_t size = hone_dtype_size(d->dtype);
  const int64_t n = hone_desc_count(d);
  const bool floats = w->desc.dtype == HONE_DTYPE_F32;
  for (int64_t i = 0; floats && i < n; i++)
    if (fabsf(((float *)w->data)[i]) < FLT_MAX) range = fmax(range, fabs((double)((float *)w->data)[i]));
  walk place = {{0}, 0};
  for (int64_t i = 0; i < n; i++) {
    const unsigned char *g = data + (size_t)next_offset(&place, d) * size;
    if (!floats) {
      if (w->desc.dtype == HONE_DTYPE_F64 ? close_f64(c, g, w, i)
                                          : !memcmp(g, (unsigned char *)w->data + (size_t)i * size, size))
        continue;
      if (!c->moves && both_nan(g, (unsigned char *)w->data + (size_t)i * size, d->dtype)) continue;
      snprintf(text, text_size, "output %u, element %lld differs", k, (long long)i);
      return false;
    }
    const float got = as_float(g, d->dtype), want = ((float *)w->data)[i];
    if ((isnan(got) && isnan(want)) || got == want || got == rounded(want, d->dtype)) continue;
    if (!c->moves && fabs((double)got - (double)want) <= bound * range) continue;
    snprintf(text, text_size, "output %u, element %lld: got %.9g, want %.9g", k, (long long)i, (double)got,
             (double)want);
    return false;
  }
  return true;
}

/* What lies between the pixels of a part belongs to others: nothing is written there. */
static bool others_are_kept(const hone_tensor_desc *d, unsigned char *data, size_t bytes) {
  const size_t size = hone_dtype_size(d->dtype);
  const int64_t n = hone_desc_count(d);
  walk w = {{0}, 0};
  for (int64_t i = 0; i < n; i++) memset(data + begin_of(d) + (size_t)next_offset(&w, d) * size, 0xff, size);
  for (size_t i = 0; i < bytes; i++)
    if (data[i] != 0xff) return false;
  return true;
}

static bool gaps_are_zero(const hone_tensor_desc *d, const unsigned char *data) {
  const size_t size = hone_dtype_size(d->dtype);
  if (d->layout != HONE_LAYOUT_CHANNELS_LAST || d->channel_pitch <= d->dim[1]) return true;
  const int64_t pixels = d->dim[1] ? hone_desc_count(d) / d->dim[1] : 0;
  for (int64_t p = 0; p < pixels; p++)
    for (size_t b = (size_t)(p * d->channel_pitch + d->dim[1]) * size;
         b < (size_t)((p + 1) * d->channel_pitch) * size; b++)
      if (data[b]) return false;
  return true;
}

/* ---------------------------------------------------------------- running */

static void run_tactic(device_run *r, const one_case *c, const hone_tactic_desc *t, const hone_step *step,
                       char layout) {
  const hone_machine *m = r->place.backend->machine(r->place.device);
  hone_error error = {0};
  hone_tactic_need need = {0};
  const void *in[MAX_TENSORS] = {NULL};
  void *out[MAX_TENSORS];
  buffer from[MAX_TENSORS] = {{0}}, to[MAX_TENSORS] = {{0}}, blob, workspace;
  const double seconds = t->cost(step, m);
  if (!(seconds > 0 && seconds < 10)) fail(r, c, t, layout, "the predicted time is not between 0 and 10 s");
  hone_status s = t->need ? t->need(step, m, &need, &error) : HONE_OK;
  blob = make(r, need.blob_bytes, 0xff), workspace = make(r, need.workspace_bytes, 0xff);
  if (!s) s = hn_tactic_pack(t, step, m, blob.host, need.blob_bytes, &error);
  if (!intact(&blob)) fail(r, c, t, layout, "prepack wrote around its blob");
  for (uint32_t i = 0; i < c->n_in; i++) {
    if (!c->present[i]) continue;
    const hone_tensor_desc *d = &step->input[i].desc;
    from[i] = make(r, memory_of(d), 0xff);
    if (!(need.packed >> i & 1)) put_input(&c->in[i], d, from[i].host + begin_of(d));
    in[i] = from[i].device + begin_of(d);
    if (!s) s = send(r, &from[i], &error);
  }
  for (uint32_t i = 0; i < c->n_out; i++) {
    to[i] = make(r, memory_of(&step->output[i].desc), 0xff);
    out[i] = to[i].device + begin_of(&step->output[i].desc);
    if (!s) s = send(r, &to[i], &error);
  }
  if (!s) s = send(r, &blob, &error);
  if (!s) s = send(r, &workspace, &error);
  hone_step_run run = {
      .step = step, .in = in, .out = out, .blob = blob.device, .workspace = workspace.device};
  if (!s) s = device_run_segment(&r->place, t, &run, &error);
  for (uint32_t i = 0; i < c->n_out && !s; i++) s = fetch(r, &to[i], &error);
  for (uint32_t i = 0; i < c->n_in && !s; i++)
    if (from[i].host) s = fetch(r, &from[i], &error);
  if (!s) s = fetch(r, &workspace, &error);
  if (!s) s = r->place.backend->sync(r->place.device, r->place.queue, &error);
  if (s) {
    fail(r, c, t, layout, error.what);
    if (s == HONE_ERROR_DEVICE) exit(1); /* the context is lost */
  }
  char text[160];
  for (uint32_t i = 0; i < c->n_out && !s && !r->o->unjudged; i++) {
    const hone_tensor_desc *d = &step->output[i].desc;
    if (!compare(c, i, d, to[i].host + begin_of(d), bound_of(r->storage, step->math), r->epilogue.range, text,
                 sizeof text))
      fail(r, c, t, layout, text);
    else if (!gaps_are_zero(d, to[i].host))
      fail(r, c, t, layout, "what is behind the channels is not zero");
    else if (is_part(d) && !others_are_kept(d, to[i].host, memory_of(d)))
      fail(r, c, t, layout, "wrote between the pixels of a part");
    if (!intact(&to[i])) fail(r, c, t, layout, "wrote outside its output");
  }
  for (uint32_t i = 0; i < c->n_in && !s; i++)
    if (from[i].host && !intact(&from[i])) fail(r, c, t, layout, "wrote around an input");
  if (!s && !intact(&workspace)) fail(r, c, t, layout, "wrote around its workspace");
  for (uint32_t i = 0; i < MAX_TENSORS; i++) drop(r, &from[i]), drop(r, &to[i]);
  drop(r, &blob), drop(r, &workspace);
}

static unsigned char storage_bit(const device_run *r) {
  return r->storage == HONE_DTYPE_F32 ? 1 : r->storage == HONE_DTYPE_F16 ? 2 : 4;
}

/* What --thin runs: a tactic once on every case that it takes, in row-major, in another layout and on parts
 * of wider pixels, as an image, and once with every storage type, layout, width of the output and epilogue;
 * not each with each. */
static bool is_new(device_run *r, size_t k, char layout, bool widen) {
  const uint32_t at = (uint32_t)(strchr(layouts, layout) - layouts),
                 here = layout == 'i'   ? 16u
                        : layout == 'w' ? 4u
                        : layout > 'w'  ? 8u
                        : layout == 'r' ? 1u
                                        : 2u,
                 bits = storage_bit(r) | 8u << at | 2048u << widen | 8192u << r->variant;
  const bool new = !(r->in_case[k] & here) || bits & ~r->seen[k];
  r->in_case[k] |= (unsigned char)here, r->seen[k] |= bits;
  return new;
}

/* What a tactic has been through already counts for all cases: then shards are of tactics. */
static bool by_tactic(const device_check *o) { return o->once || o->thin; }

/* Whether tactic k is to see steps of the storage type at hand. */
static bool is_due(const device_run *r, size_t k) {
  const hone_tactic_desc *const t = r->tactics->unit[k];
  if (!device_wants(r->o->tactic, t->name)) return false;
  if (by_tactic(r->o) && k % r->o->shards != r->o->shard) return false;
  if (r->o->once && r->reached[k] & storage_bit(r)) return false;
  return !(r->o->coverage && r->reached[k]);
}

static bool any_is_due(const device_run *r, const char *anchor) {
  uint32_t k = hn_listing_first(r->tactics, anchor);
  while (k != HN_NO_UNIT && !is_due(r, k)) k = r->tactics->next[k];
  return k != HN_NO_UNIT;
}

/* Whether tactic k takes this case, and runs it; what reached it is noted. */
static bool try_tactic(device_run *r, const one_case *c, size_t k, const hone_tactic_desc *t, hone_step *step,
                       char layout, bool widen, hone_reason *why) {
  static const hone_math maths[] = {HONE_MATH_FAST, HONE_MATH_TF32, HONE_MATH_FP8};
  const hone_machine *m = r->place.backend->machine(r->place.device);
  for (size_t i = 0; i < sizeof maths / sizeof *maths; i++) {
    /* f32 as f32, of every other case in all its bits, and where that is refused with operands rounded to
     * tf32, or to e4m3. */
    step->math = i == 0 && r->cases % 2 ? HONE_MATH_F32 : maths[i];
    if (!t->accepts(step, m, why)) continue;
    r->reached[k] |= storage_bit(r);
    if (r->o->thin && !is_new(r, k, layout, widen)) return false;
    if (!r->o->coverage) run_tactic(r, c, t, step, layout);
    return true;
  }
  return false;
}

/* How activations are stored, and what outputs are: of the same type, or f32 because the caller reads them.
 */
static void check_layout(device_run *r, one_case *c, char layout, bool widen) {
  hone_step_tensor in[MAX_TENSORS] = {0}, out[MAX_TENSORS] = {0};
  hone_reason why = {"no tactic has this operator"};
  const uint32_t last = hn_anchor_named(anchor_of(c), c->node).layouts;
  int accepted = 0;
  bool parts = false;
  for (uint32_t i = 0; i < c->n_in; i++) {
    if (!c->present[i]) continue;
    in[i] = (hone_step_tensor){c->in[i].desc, c->constant[i] ? c->in[i].data : NULL};
    if (c->constant[i]) continue;
    if (in[i].desc.dtype == HONE_DTYPE_F32) in[i].desc.dtype = r->storage;
    /* Of epilogues: like the output. */
    const bool added = i >= r->epilogue.n_anchor_inputs || (c->before && i == CHAIN_ADDED);
    /* As lowering gives them: of most operators the first input alone follows the layout. */
    parts |=
        set_device_layout(&in[i].desc, last && !(last & HONE_LAST_ALL) && i && !added ? 'r' : layout, added);
  }
  for (uint32_t i = 0; i < c->n_out; i++) {
    out[i].desc = c->want[i].desc;
    if (out[i].desc.dtype == HONE_DTYPE_F32 && !widen) out[i].desc.dtype = r->storage;
    parts |= set_device_layout(&out[i].desc, layout, true);
  }
  if (layout >= 'w' && (!parts || c->before)) return; /* no plan gives parts to chains */
  if (layout == 'i' && (c->before || in[0].desc.channel_pitch != 4 || hone_dtype_size(in[0].desc.dtype) != 2))
    return;
  hone_step step = {.struct_size = sizeof step,
                    .abi = HONE_PLUGIN_ABI,
                    .anchor = anchor_of(c),
                    .name = "it",
                    .node = c->node,
                    .n_inputs = c->n_in,
                    .n_anchor_inputs = r->epilogue.n_anchor_inputs,
                    .input = in,
                    .n_outputs = c->n_out,
                    .output = out,
                    .n_epilogue = r->epilogue.n};
  memcpy(step.epilogue, r->epilogue.list, sizeof step.epilogue);
  chain_case chain;
  if (c->before) {
    hone_tensor_desc middle = c->before->out[0]->desc;
    middle.dtype = r->storage;
    set_device_layout(&middle, layout, true);
    chain_parts(c, &step, &middle, &chain);
  }
  const hn_listing *l = r->tactics;
  for (uint32_t k = hn_listing_first(l, step.anchor); k != HN_NO_UNIT; k = l->next[k])
    if (is_due(r, k)) accepted += try_tactic(r, c, k, l->unit[k], &step, layout, widen, &why);
  r->runs += accepted;
  r->taken += accepted > 0;
  if (r->o->verbose)
    printf("%s  %s%s %c: %d runs%s%s\n", c->line, hone_dtype_name(r->storage), widen ? " to f32" : "", layout,
           accepted, accepted ? "" : ", ", accepted ? "" : why.text);
}

static bool has_floats(const one_case *c) {
  for (uint32_t i = 0; i < c->n_in; i++)
    if (c->present[i] && !c->constant[i] && c->in[i].desc.dtype == HONE_DTYPE_F32) return true;
  return false;
}

/* Thin runs begin with another variant on each case, so that they are spread over the cases. */
static int turn(const device_run *r) { return r->o->thin ? r->cases : 0; }

/* A case in one storage type, with one epilogue, in all layouts. */
static void check_unit(device_run *r, const char *line, hone_dtype storage, int epilogue) {
  static one_case c;
  hn_arena keep = {0};
  hn_rng rng = {.state = 7};
  read_case(&c, line, &rng);
  r->storage = storage;
  r->variant = epilogue;
  if ((storage == HONE_DTYPE_F32 || has_floats(&c)) && any_is_due(r, anchor_of(&c))) {
    const bool judged = !r->o->coverage && !r->o->unjudged;
    round_inputs(&c, storage);
    if (judged || !describe_outputs(&c)) compute_reference(&c, storage, &keep);
    if (append_epilogue(&c, epilogue, &r->epilogue)) {
      apply_epilogue(&c, &r->epilogue);
      const int widths = storage == HONE_DTYPE_F32 || r->o->sizes ? 1 : 2;
      for (int l = 0; l < LAYOUTS; l++)
        for (int w = 0; w < (r->o->thin ? 1 : widths); w++)
          check_layout(r, &c, layouts[(l + turn(r) / 3) % LAYOUTS], (w + turn(r) + (int)r->units) % widths);
      r->units += r->o->thin;
    }
  }
  free_case(&c);
  hn_arena_free(&keep);
}

/* Neighbours in a file take about as long: they go to different processes. */
static bool is_mine(device_run *r) {
  return by_tactic(r->o) || (r->units++ * 2654435761u >> 8) % r->o->shards == r->o->shard;
}

static void check_line(device_run *r, const char *line) {
  static const hone_dtype types[] = {HONE_DTYPE_F32, HONE_DTYPE_F16, HONE_DTYPE_BF16};
  char op[64] = "";
  sscanf(line, "%63[^@ ]", op);
  const bool product = takes_epilogues(op);
  memset(r->in_case, 0, r->tactics->n);
  const int before = r->taken, others = EPILOGUES - 1, kinds = product ? EPILOGUES : 1;
  const bool sizes = r->o->sizes;
  for (int i = 0; i < kinds; i++) {
    /* All tactics with all epilogues take long, mostly to compile: each case has a plain one and another in
     * turn, all of them where tactics are named. Sizes are the same with any epilogue and in either half.
     * What runs once does so with an epilogue. */
    const bool once = r->o->once;
    const int e = once && product && i < 2 ? 1 - i : (i + turn(r)) % kinds,
              other = sizes || once ? 1 : 1 + r->cases % others;
    if (e && e != other && (sizes || once || !(r->o->coverage || r->o->thin || r->o->tactic))) continue;
    for (int k = 0; k < (sizes ? 2 : 3); k++)
      if (is_mine(r)) check_unit(r, line, types[(k + turn(r)) % 3], e);
  }
  r->cases++;
  if (r->taken == before && r->o->verbose) printf("%s: no tactic here\n", line);
}

/* Steps of these anchors are no single ONNX node: check_pointwise, check_attention, check_codes and
 * test_squeeze have cases of them. */
static bool has_other_program(const char *anchor) {
  static const char *const names[] = {"Pointwise",        "FusedAttention",     "SqueezeExcite",
                                      "QLinearConvAdd",   "QLinearGemm",        "QLinearAdd",
                                      "QLinearMaxPool",   "QLinearAveragePool", "QLinearConvTable",
                                      "CodeTable",        "QLinearMul",         "QLinearLayerNormalization",
                                      "QLinearMatMulAdd", "QLinearMatMulTable"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(anchor, names[i])) return true;
  return false;
}

/* Tactics that no case reached; that counts as a failure on a machine that has all of them. */
static int report_coverage(const device_run *r) {
  const hone_machine *m = r->place.backend->machine(r->place.device);
  const bool whole = m->arch == 90 && (m->libraries & HONE_LIB_CUDNN) && (m->libraries & HONE_LIB_CUBLASLT);
  int missing = 0;
  for (uint32_t k = 0; k < r->tactics->n; k++) {
    const hone_tactic_desc *const t = r->tactics->unit[k];
    if (r->reached[k] || !device_wants(r->o->tactic, t->name) || has_other_program(t->anchor)) continue;
    missing++;
    printf("%s%s: no case reaches it\n", whole ? "FAIL " : "", t->name);
  }
  printf("%d cases, %u tactics, %d reached by none%s\n", r->cases, r->tactics->n, missing,
         whole ? "" : " (a machine of arch 90 with cuDNN and cuBLASLt has to reach all)");
  return whole && missing;
}

int check_on_device(const device_check *o, case_file *files, size_t n_files) {
  device_run r = {.o = o};
  hone_error error = {0};
  const hone_status s = device_open(&r.place, o->device, &error);
  if (s == HONE_ERROR_MISSING) {
    printf("SKIP: %s\n", error.what);
    return SKIPPED;
  }
  if (s) {
    printf("FAIL %s: %s\n", o->device, error.what);
    return 1;
  }
  r.tactics = hn_registry_take(r.place.backend->tactics);
  const uint32_t n = r.tactics->n;
  r.reached = hn_calloc(n, 1), r.in_case = hn_calloc(n, 1), r.seen = hn_calloc(n, sizeof *r.seen);
  if (!r.reached || !r.in_case || !r.seen) die("no memory", o->device);
  char line[1024];
  for (size_t i = 0; i < n_files; fclose(files[i++].file))
    while (next_case(&files[i], o->filter, line)) check_line(&r, line);
  int failed = r.failures > 0;
  if (o->coverage)
    failed = report_coverage(&r);
  else
    printf("%d cases, %d runs of tactics on %s, %d failures\n", r.cases, r.runs, o->device, r.failures);
  hn_free(r.reached), hn_free(r.in_case), hn_free(r.seen);
  hn_listing_drop(r.tactics);
  device_close(&r.place);
  return failed;
}

int read_device_option(device_check *o, char **argv, int left) {
  const struct {
    const char *name;
    const char **text;
    bool *flag;
  } options[] = {{"--device", &o->device, NULL},     {"--tactic", &o->tactic, NULL},
                 {"--filter", &o->filter, NULL},     {"--once", NULL, &o->once},
                 {"--coverage", NULL, &o->coverage}, {"--thin", NULL, &o->thin},
                 {"--unjudged", NULL, &o->unjudged}, {"-v", NULL, &o->verbose}};
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    if (strcmp(*argv, options[i].name)) continue;
    if (options[i].flag) return *options[i].flag = true, 1;
    return left > 1 ? (*options[i].text = argv[1], 2) : -1;
  }
  if (strcmp(*argv, "--shard")) return 0;
  return left > 1 && sscanf(argv[1], "%u/%u", &o->shard, &o->shards) == 2 && o->shard < o->shards ? 2 : -1;
}
