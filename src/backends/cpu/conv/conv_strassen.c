/* Conv of one tap with one step of Strassen's method: the pixels of an image are the rows of a matrix, and
 * meet. */
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/strassen/strassen.h"
#include "backends/cpu/product/conv_driver.h"
#include "backends/cpu/product/strassen_driver.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/mem.h"
#include "optimize/step/conv_attr.h"

typedef struct head {
  hn_strassen plan;
  hn_conv usual; /* the same as a product without halves, of which the cost model knows most */
  int64_t weights_at, bytes;
} head;

/* Pixels at one distance through all images. */
static bool is_even(const hn_pixels *p) {
  const hn_view *v = &p->view;
  return v->row == p->size[2] * v->pixel && (p->size[0] == 1 || v->slice == p->size[1] * v->row) &&
         (p->batch == 1 || v->batch == p->size[0] * p->size[1] * v->row);
}

static bool rows_are_even(const hone_step *s, const hn_conv_attr *a) {
  if (!is_even(&a->x) || !is_even(&a->y)) return false;
  for (uint32_t i = 0; i < s->n_epilogue; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    hn_pixels other;
    if ((e->kind == HONE_EPI_ADD || e->kind == HONE_EPI_MUL) &&
        (!hn_pixels_of(&s->input[e->input].desc, &other) || !is_even(&other)))
      return false;
  }
  return true;
}

static bool one_tap(const hn_conv_attr *a) {
  for (int d = 0; d < 3; d++)
    if (a->kernel[d] != 1 || a->stride[d] != 1 || a->pad[d] || a->x.size[d] != a->y.size[d]) return false;
  return a->groups == 1;
}

static bool describe(const hone_step *s, const hone_machine *m, head *h, hone_reason *why) {
  hn_conv_attr a;
  memset(h, 0, sizeof *h);
  if (s->math < HONE_MATH_FAST) return hn_refuse(why, "Strassen's method takes level 3");
  if (!hn_step_is_f32(s, why) || !hn_conv_attr_of(s, &a, why)) return false;
  const hn_isa isa = hn_isa_of(m->isa);
  if (!hn_epilogue_accepts(s, isa, false, why)) return false;
  const hn_gemm_ops *o = hn_gemm_find(isa);
  if (!o || !hn_strassen_find(isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(isa));
  if (!s->input[1].constant) return hn_refuse(why, "the weights are no constant");
  if (!one_tap(&a) || !rows_are_even(s, &a)) return hn_refuse(why, "no product of one matrix of pixels");
  const int64_t pixels = a.x.size[0] * a.x.size[1] * a.x.size[2];
  h->plan = (hn_strassen){.isa = isa,
                          .m = a.x.batch * pixels,
                          .n = a.cout,
                          .k = a.cin,
                          .x_row = a.x.view.pixel,
                          .y_row = a.y.view.pixel,
                          .apart = pixels};
  if (!hn_strassen_plan(&h->plan, m->threads, m->l1, m->l2))
    return hn_refuse(why, "too small for halves, or an odd inner dimension");
  h->usual = (hn_conv){.batch = a.x.batch,
                       .groups = 1,
                       .cin = a.cin,
                       .cout = a.cout,
                       .stride = {1, 1, 1},
                       .in_pitch = a.x.view.pixel,
                       .in_batch = a.x.view.batch,
                       .in_k = 1,
                       .out = a.y.view,
                       .n_runs = 1,
                       .k = a.cin};
  for (int i = 0; i < 3; i++) h->usual.in[i] = a.x.size[i], h->usual.grid[i] = a.y.size[i];
  hn_conv_plan(&h->usual, o, m->threads, m->l1, m->l2);
  h->weights_at = (int64_t)hn_round_up(sizeof *h, 64);
  h->bytes =
      h->weights_at +
      (int64_t)(hn_gemm_packed_size(o, (size_t)a.cout, (size_t)a.cin) + hn_strassen_marks(&h->plan)) * 4;
  return true;
}

static double cost_of(const head *h, const hone_step *s, const hone_machine *m) {
  const hn_gemm_ops *o = hn_gemm_find(h->plan.isa);
  return hn_conv_seconds_at(&h->usual, o, m, hn_strassen_products(&h->plan)) +
         hn_strassen_cycles(&h->plan, m->threads) / hn_core_hertz(o, m) + hn_epilogue_seconds(s, m, true);
}

static void need_of(const head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  n->blob_bytes = (size_t)h->bytes;
  n->packed = n->bytewise = 1u << 1;
  n->workspace_bytes = hn_strassen_workspace(&h->plan, m->threads) * 4;
}

static size_t shared(const hone_step *s, const hone_machine *m, uint64_t *key) {
  (void)key;
  head h;
  return describe(s, m, &h, NULL) ? (size_t)h.weights_at : 0;
}

static void work(const hone_step *s, const hone_machine *m, hone_work *w) {
  head h;
  if (describe(s, m, &h, NULL)) w->flops -= 2 * s->cost.macs * (1 - hn_strassen_products(&h.plan));
}

static hone_status fill(head *h, const hone_step *s, void *blob, hone_error *error) {
  (void)error;
  const hn_gemm_ops *o = hn_gemm_find(h->plan.isa);
  const int64_t k = h->plan.k, n = h->plan.n;
  float *w = (float *)(void *)((unsigned char *)blob + h->weights_at);
  memcpy(blob, h, sizeof *h);
  if (s->own_only) return HONE_OK;
  hn_gemm_pack_b(o, s->input[1].constant, 1, k, (size_t)k, (size_t)n, 0, (size_t)n, w);
  hn_strassen_mark(&h->plan, w, w + hn_gemm_packed_size(o, (size_t)n, (size_t)k));
  return HONE_OK;
}

HN_DESCRIBED_SIZED(head, fill)

static hone_status run(const hone_step_run *r, hone_error *error) {
  (void)error;
  const head *h = r->blob;
  hn_epilogue e;
  hn_epilogue_bind(r->step, h->plan.isa, false, hn_step_bias(r->step, r->in), r->in, &e);
  hn_strassen_exec(&h->plan, r->in[0], hn_shared_at(r, h->weights_at), r->out[0], &e, r->workspace,
                   r->parallel, r->pool);
  return HONE_OK;
}

HN_TACTIC(cpu, conv_strassen, "Conv", 2, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run, .shared = shared, .work = work);
