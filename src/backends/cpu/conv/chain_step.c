#include "backends/cpu/conv/chain_step.h"

#include <string.h>

#include "backends/cpu/conv/chain_driver.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/halves/halves.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/mem.h"
#include "optimize/step/conv_attr.h"

enum { MAX_INPUTS = 31 };

typedef struct blob_head {
  hn_chain chain;
  hn_isa isa;
  int64_t expand_at, depthwise_at, project_at, ones_at, bytes;
} blob_head;

/* The parts by their role; NULL: not there. */
typedef struct roles {
  const hone_step_part *expand, *depthwise, *project;
} roles;

/* The whole's input that holds a part's weights. */
static uint32_t weights_of(const hone_step_part *p) { return p->input[1]; }

static bool is_depthwise(const hn_conv_attr *a) { return a->cin == 1 && a->cout == 1 && a->groups > 1; }

static bool is_pointwise(const hn_conv_attr *a) {
  bool one = a->groups == 1 && a->x.size[0] == 1;
  for (int i = 0; i < 3; i++) one = one && a->kernel[i] == 1 && a->stride[i] == 1 && a->pad[i] == 0;
  return one && a->x.size[1] == a->y.size[1] && a->x.size[2] == a->y.size[2];
}

/* A network's first convolution, or one like it: any kernel over few channels. */
static bool is_window(const hn_conv_attr *a) {
  return a->groups == 1 && hn_conv_is_picture(a) && a->dilation[1] == 1 && a->dilation[2] == 1 &&
         a->pad[1] >= 0 && a->pad[2] >= 0 && a->kernel[1] * a->kernel[2] * a->cin <= 128;
}

/* Inner tensors are never in memory: no operation of their epilogues may read another tensor. */
static bool inner_epilogue(const hone_step *s, hone_reason *why) {
  for (uint32_t i = 0; i < s->n_epilogue; i++)
    if (s->epilogue[i].kind == HONE_EPI_ADD || s->epilogue[i].kind == HONE_EPI_MUL)
      return hn_refuse(why, "an inner epilogue reads a tensor");
  return true;
}

/* The type of 16 bits that input and output may lie in, beside f32. */
static hone_dtype narrow_of(const hn_chain_step_config *config) {
  if (config->parts != 1) return HONE_DTYPE_F32;
  return config->f16 ? HONE_DTYPE_F16 : HONE_DTYPE_BF16;
}

static bool find_roles(const hone_step *s, const hn_chain_step_config *config, roles *r, hn_conv_attr a[3],
                       hone_reason *why) {
  if (s->n_parts < 2 || s->n_parts > 3) return hn_refuse(why, "%u parts", s->n_parts);
  if (s->n_inputs > MAX_INPUTS) return hn_refuse(why, "more than %d inputs", MAX_INPUTS);
  memset(r, 0, sizeof *r);
  for (uint32_t k = 0; k < s->n_parts; k++) {
    const hone_step_part *p = &s->part[k];
    hn_conv_attr attr;
    if (!hn_step_is_float(p->step, narrow_of(config), why) || !hn_conv_attr_of(p->step, &attr, why))
      return false;
    if (!s->input[weights_of(p)].constant) return hn_refuse(why, "weights are not constant");
    if (is_depthwise(&attr) && !r->depthwise)
      r->depthwise = p, a[1] = attr;
    else if ((is_pointwise(&attr) || is_window(&attr)) && !r->depthwise && !r->expand)
      r->expand = p, a[0] = attr;
    else if (is_pointwise(&attr) && r->depthwise && !r->project)
      r->project = p, a[2] = attr;
    else
      return hn_refuse(why, "part %u is neither a depthwise nor a 1x1 convolution in its place", k);
  }
  return r->depthwise || hn_refuse(why, "no depthwise convolution");
}

/* A 1x1 convolution's weights in its arithmetic, or those of a window (parts 0): columns rows of cin x taps.
 */
static size_t weight_bytes(int64_t parts, const hn_gemm_ops *o, int64_t columns, int64_t k) {
  return hn_round_up(parts ? hn_chain_weights(columns, hn_chain_steps_of(k), parts) * 2
                           : hn_gemm_packed_size(o, (size_t)columns, (size_t)k) * 4,
                     64);
}

static const hn_bf16_ops *parts_ops(const hn_chain *c, hn_isa isa) {
  if (!c->parts) return NULL;
  return c->f16 ? hn_f16_find(isa) : hn_bf16_find(isa);
}

/* The kernels of parts, where there are any, and the plan allows them. */
static bool find_parts(const hone_step *s, const hn_chain *c, hn_isa isa, const hn_bf16_ops **b,
                       hone_reason *why) {
  const char *what = c->f16 ? "f16" : c->parts > 1 ? "split bf16" : "bf16";
  static const hone_math least[] = {HONE_MATH_F32, HONE_MATH_BF16, HONE_MATH_FAST, HONE_MATH_F32};
  *b = parts_ops(c, isa);
  if (!c->parts) return true;
  if (c->f16 ? s->math != HONE_MATH_TF32 : s->math < least[c->parts])
    return hn_refuse(why, "the plan does not allow products of %s numbers", what);
  if (!*b || c->parts > (*b)->parts) return hn_refuse(why, "no %s kernel for %s", what, hn_isa_name(isa));
  return true;
}

/* Operations on rows of inner tensors, beside bias and activation. */
static bool inner_posts(const hone_step *s, hn_isa isa) {
  static const float bias;
  const void *const in[MAX_INPUTS + 1] = {NULL};
  for (uint32_t k = 0; k + 1 < s->n_parts; k++) {
    hn_epilogue e;
    hn_epilogue_bind(s->part[k].step, isa, false, &bias, in, &e);
    if (e.n_post) return true;
  }
  return false;
}

static void pack_window_pairs(const hn_bf16_ops *b, const hn_chain *c, const float *w, void *to) {
  const int64_t taps = c->e_kernel[0] * c->e_kernel[1];
  int64_t at[HN_CHAIN_CHANNELS];
  hn_chain_window_places(c, at);
  hn_bf16_pack(b, w, at, c->cin * taps, (size_t)hn_chain_window_steps(c), (size_t)c->hidden, 0,
               (size_t)c->hidden, 1, 1, to);
}

static void pack(const hn_bf16_ops *b, int64_t parts, hn_isa isa, const float *w, int64_t columns,
                 int64_t cin, int64_t taps, void *to) {
  if (!parts) {
    hn_gemm_pack_weights(hn_gemm_find(isa), w, cin * taps, taps, 1, cin, NULL, taps, columns, to);
    return;
  }
  hn_chain_pack_parts(b, parts, w, columns, cin, to);
}

static int64_t e_taps(const hn_chain *c) { return c->window ? c->e_kernel[0] * c->e_kernel[1] : 1; }

static bool describe(const hone_step *s, const hone_machine *m, const hn_chain_step_config *config,
                     blob_head *h, hone_reason *why) {
  roles r;
  hn_conv_attr a[3];
  if (!find_roles(s, config, &r, a, why)) return false;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  const hn_gemm_ops *o = hn_gemm_find(h->isa);
  if (!o || !hn_strip_find(h->isa) || !hn_depthwise_find(h->isa))
    return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  for (uint32_t k = 0; k < s->n_parts; k++) {
    /* What the depthwise kernel adds is f32. */
    const hone_dtype narrow = r.project == &s->part[k] ? narrow_of(config) : HONE_DTYPE_F32;
    if (!hn_epilogue_takes(s->part[k].step, h->isa, false, narrow, why)) return false;
    if (k + 1 < s->n_parts && !inner_epilogue(s->part[k].step, why)) return false;
  }
  const hn_conv_attr *first = r.expand ? &a[0] : &a[1], *last = r.project ? &a[2] : &a[1];
  if (!hn_conv_is_picture(&a[1])) return hn_refuse(why, "three spatial dimensions");
  if (a[1].kernel[1] > HN_CHAIN_ROWS || m->threads > HN_CHAIN_ROWS)
    return hn_refuse(why, "more than %d kernel rows or threads", HN_CHAIN_ROWS);
  if (!last->y.even) return hn_refuse(why, "output pixels are not evenly spaced");
  hn_chain *c = &h->chain;
  const int parts = config->parts;
  c->parts = parts, c->f16 = config->f16;
  const hn_bf16_ops *b;
  if (!find_parts(s, c, h->isa, &b, why)) return false;
  c->narrow_in = s->part[0].step->input[0].desc.dtype != HONE_DTYPE_F32;
  c->narrow_out = s->part[s->n_parts - 1].step->output[0].desc.dtype != HONE_DTYPE_F32;
  c->batch = first->x.batch, c->expand = r.expand != NULL, c->project = r.project != NULL;
  c->cin = first->x.channels, c->hidden = a[1].x.channels, c->cout = last->y.channels;
  for (int i = 0; i < 2; i++) {
    c->in[i] = a[1].x.size[i + 1], c->out[i] = a[1].y.size[i + 1], c->kernel[i] = a[1].kernel[i + 1];
    c->stride[i] = a[1].stride[i + 1], c->dilation[i] = a[1].dilation[i + 1], c->pad[i] = a[1].pad[i + 1];
  }
  c->x = first->x.view, c->y = last->y.view;
  c->window = r.expand && !is_pointwise(&a[0]);
  for (int i = 0; i < 2 && c->window; i++) {
    c->image[i] = a[0].x.size[i + 1], c->e_kernel[i] = a[0].kernel[i + 1];
    c->e_stride[i] = a[0].stride[i + 1], c->e_pad[i] = a[0].pad[i + 1];
  }
  c->paired = hn_chain_pairs(c, b, hn_depthwise_bf16_find(h->isa), inner_posts(s, h->isa));
  if (parts && !c->paired && (c->window || parts == 3) && o->nr != HN_BF16_PANEL)
    return hn_refuse(why, "tiles of another width");
  if (parts && (c->cin > HN_CHAIN_CHANNELS || c->hidden > HN_CHAIN_CHANNELS))
    return hn_refuse(why, "more than %d channels", HN_CHAIN_CHANNELS);
  if (parts == 3 && !r.project && (!r.expand || c->window)) return hn_refuse(why, "no 1x1 convolution");
  hn_chain_plan(c, o, b, m->threads, m->l2);
  size_t at = hn_round_up(sizeof *h, 64);
  h->ones_at = (int64_t)at;
  if (c->splits > 1) at += hn_round_up((size_t)(c->splits * ((c->cout + 15) / 16 * 16)) * 4, 64);
  h->expand_at = (int64_t)at;
  if (c->window && c->paired)
    at += weight_bytes(1, o, c->hidden, hn_chain_window_steps(c) * HN_BF16_STEP);
  else if (r.expand)
    at += weight_bytes(c->e_parts, o, c->hidden, c->cin * e_taps(c));
  h->depthwise_at = (int64_t)at;
  at += hn_round_up((size_t)(c->kernel[0] * c->kernel[1] * c->w_tap) * 4, 64);
  h->project_at = (int64_t)at;
  if (r.project) at += weight_bytes(c->p_parts, o, c->cout, c->hidden);
  h->bytes = (int64_t)at;
  return true;
}

bool hn_chain_step_accepts(const hone_step *s, const hone_machine *m, const hn_chain_step_config *config,
                           hone_reason *why) {
  blob_head h;
  return describe(s, m, config, &h, why);
}

double hn_chain_step_cost(const hone_step *s, const hone_machine *m, const hn_chain_step_config *config) {
  blob_head h;
  if (!describe(s, m, config, &h, NULL)) return HN_REFUSED_SECONDS;
  double peak = m->peak_flops > 0 ? m->peak_flops : 1e10;
  double hertz = peak / (4.0 * hn_gemm_find(h.isa)->vw * (m->threads ? m->threads : 1));
  /* What a chain adds is its own input, as a rule, which the same rows have just brought near. */
  double epilogues = 0;
  for (uint32_t i = 0; i < s->n_parts; i++) epilogues += hn_epilogue_seconds(s->part[i].step, m, false);
  return h.chain.cycles / hertz + epilogues + 3e-6;
}

/* The depthwise convolution, and one that spans a window, are f32's in any case; beside the 1x1 convolutions
 * they are little. */
void hn_chain_step_work(const hone_step *s, const hone_machine *m, const hn_chain_step_config *config,
                        hone_work *work) {
  blob_head h;
  roles r;
  hn_conv_attr a[3];
  if (!config->parts || !describe(s, m, config, &h, NULL) || !find_roles(s, config, &r, a, NULL)) return;
  double macs = h.chain.p_parts ? r.project->step->cost.macs : 0;
  if (r.expand && h.chain.e_parts) macs += r.expand->step->cost.macs;
  if (config->f16)
    work->arithmetic = HONE_ARITHMETIC_F16;
  else
    hn_bf16_work(macs, (uint32_t)config->parts, work);
}

hone_status hn_chain_step_need(const hone_step *s, const hone_machine *m, const hn_chain_step_config *config,
                               hone_tactic_need *n, hone_error *error) {
  blob_head h;
  hone_reason why;
  if (!describe(s, m, config, &h, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "conv_chain: %s", why.text);
  n->blob_bytes = (size_t)h.bytes;
  for (uint32_t k = 0; k < s->n_parts; k++) n->packed |= 1u << weights_of(&s->part[k]);
  n->workspace_bytes = (hn_chain_scratch(&h.chain) * m->threads + hn_chain_partials(&h.chain)) * 4;
  return HONE_OK;
}

size_t hn_chain_step_shared(const hone_step *s, const hone_machine *m, const hn_chain_step_config *config,
                            uint64_t *key) {
  (void)key;
  blob_head h;
  return describe(s, m, config, &h, NULL) ? (size_t)h.expand_at : 0;
}

hone_status hn_chain_step_prepack(const hone_step *s, const hone_machine *m,
                                  const hn_chain_step_config *config, void *blob, hone_error *error) {
  blob_head h;
  hone_reason why;
  roles r;
  hn_conv_attr a[3];
  if (!describe(s, m, config, &h, &why) || !find_roles(s, config, &r, a, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "conv_chain: %s", why.text);
  const hn_chain *c = &h.chain;
  unsigned char *base = blob;
  memcpy(base, &h, sizeof h);
  for (float *one = (float *)(void *)(base + h.ones_at); one < (float *)(void *)(base + h.expand_at); one++)
    *one = 1;
  if (s->own_only) return HONE_OK;
  if (c->window && c->paired)
    pack_window_pairs(parts_ops(c, h.isa), c, s->input[weights_of(r.expand)].constant, base + h.expand_at);
  else if (r.expand)
    pack(parts_ops(c, h.isa), c->e_parts, h.isa, s->input[weights_of(r.expand)].constant, c->hidden, c->cin,
         e_taps(c), base + h.expand_at);
  if (r.project)
    pack(parts_ops(c, h.isa), c->p_parts, h.isa, s->input[weights_of(r.project)].constant, c->cout, c->hidden,
         1, base + h.project_at);
  hn_depthwise d = {
      .channels = c->hidden, .window.kernel = {1, c->kernel[0], c->kernel[1]}, .w_tap = c->w_tap};
  hn_depthwise_pack(&d, s->input[weights_of(r.depthwise)].constant, (float *)(void *)(base + h.depthwise_at));
  return HONE_OK;
}

/* The epilogue of a part, with its inputs taken from those of the whole. */
static void bind(const hone_step_run *r, const hone_step_part *p, hn_isa isa, hn_epilogue *e) {
  const void *in[MAX_INPUTS + 1]; /* a part reads the whole's inputs and the part before */
  const hone_step *s = p->step;
  for (uint32_t i = 0; i < s->n_inputs; i++)
    in[i] = p->input[i] == HONE_PART_CHAINED ? NULL : r->in[p->input[i]];
  hn_epilogue_bind(s, isa, false, hn_step_bias(s, in), in, e);
}

hone_status hn_chain_step_run(const hone_step_run *r, const hn_chain_step_config *config, hone_error *error) {
  (void)config, (void)error;
  const blob_head *h = r->blob;
  const unsigned char *base = r->blob, *weights = hn_shared_at(r, h->expand_at);
  const hone_step *s = r->step;
  const hn_chain *c = &h->chain;
  hn_epilogue e[3];
  for (uint32_t k = 0; k < s->n_parts; k++) bind(r, &s->part[k], h->isa, &e[k + !c->expand]);
  float *scratch = r->workspace;
  const struct hn_halves_ops *halves = hn_halves_find(h->isa);
  hn_chain_args a = {.chain = c,
                     .gemm = hn_gemm_find(h->isa),
                     .strip = hn_strip_find(h->isa),
                     .depthwise = hn_depthwise_find(h->isa),
                     .x = r->in[s->part[0].input[0]],
                     .bf16 = parts_ops(c, h->isa),
                     .pairs = c->paired ? hn_depthwise_bf16_find(h->isa) : NULL,
                     .w_expand = weights,
                     .w_depthwise = (const float *)(const void *)(weights + (h->depthwise_at - h->expand_at)),
                     .w_project = weights + (h->project_at - h->expand_at),
                     .ones = (const float *)(const void *)(base + h->ones_at),
                     .y = r->out[0],
                     .widen = c->f16 ? halves->from_f16 : halves->from_bf16,
                     .narrow = c->f16 ? halves->to_f16 : halves->to_bf16,
                     .e_expand = &e[0],
                     .e_depthwise = &e[1],
                     .e_project = &e[2],
                     .scratch = scratch,
                     .partials = scratch + hn_chain_scratch(c) * r->threads};
  hn_chain_exec(&a, r->threads, r->parallel, r->pool);
  return HONE_OK;
}
