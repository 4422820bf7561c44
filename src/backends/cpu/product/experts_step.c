#include "backends/cpu/product/experts_step.h"

#include <string.h>

#include "backends/cpu/kernels/pointwise/pointwise.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"

/* What lies in the workspace, in this order: places of the tokens that go to an expert are behind those of
 * all earlier experts. */
typedef struct layout {
  float *weight, *x, *first, *third, *middle, *answer;
  int32_t *expert, *place, *begin; /* [routes], [routes]; [experts + 1] */
} layout;

static int64_t routes(const hn_experts *e) { return e->tokens * e->k; }
static int64_t wide(const hn_experts *e) { return e->inter * hn_experts_fusion(e); }

static size_t lay_out(const hn_experts *e, char *base, layout *l) {
  const int64_t n = routes(e);
  size_t at = 0;
  const int64_t size[9] = {
      n, n * e->hidden, n * wide(e), e->third ? n * e->inter : 0, n * e->inter, n * e->hidden, n,
      n, e->experts + 1};
  void *part[9];
  for (int i = 0; i < 9; i++) {
    part[i] = base ? base + at : NULL;
    at = hn_round_up(at + (size_t)size[i] * 4, 64);
  }
  *l = (layout){part[0], part[1], part[2], part[3], part[4], part[5], part[6], part[7], part[8]};
  return at;
}

size_t hn_experts_workspace(const hn_experts *e) {
  layout l;
  return lay_out(e, NULL, &l);
}

bool hn_experts_read(const hone_step *s, hn_experts *e, hone_reason *why) {
  if (!s->node || s->n_epilogue || hn_experts_of(s->node, e, NULL)) return hn_refuse(why, "its attributes");
  for (uint32_t i = 0; i < 2; i++)
    if (!hn_step_plain_f32(&s->input[i].desc)) return hn_refuse(why, "input %u is not row-major f32", i);
  if (!hn_step_plain_f32(&s->output[0].desc)) return hn_refuse(why, "the output is not row-major f32");
  const hone_tensor_desc *x = &s->input[0].desc, *router = &s->input[1].desc;
  e->tokens = router->dim[0], e->experts = router->dim[1], e->hidden = x->dim[x->rank - 1];
  if (hone_desc_count(x) < 1 || e->experts < 1 || e->tokens > INT32_MAX / e->k)
    return hn_refuse(why, "an empty operand, or too many tokens");
  return true;
}

double hn_experts_cost(const hone_step *s, const hone_machine *m, const hn_experts *e, double weight_bytes,
                       double efficiency) {
  /* Tokens meet in some of the experts; those are read once. */
  const double met = (double)(routes(e) < e->experts ? routes(e) : e->experts),
               each = (double)e->hidden * (double)(wide(e) + e->inter * (e->third ? 2 : 1));
  return hn_step_seconds(m, s->cost.flops, met * each * weight_bytes + 4 * hn_known_count(&s->output[0].desc),
                         efficiency);
}

typedef struct phase {
  const hn_experts_job *job;
  const layout *l;
  const float *x; /* of all tokens */
  float *y;
  int which; /* the matrix at hand */
  const float *from;
  float *to;
  int64_t columns, blocks, per_block, per_task;
} phase;

static void gather(void *arg, int64_t index, uint32_t thread) {
  const phase *p = arg;
  const hn_experts *e = p->job->of;
  (void)thread;
  const int64_t end = hn_min((index + 1) * p->per_task, routes(e));
  for (int64_t i = index * p->per_task; i < end; i++)
    memcpy(p->l->x + p->l->place[i] * e->hidden, p->x + i / e->k * e->hidden,
           (size_t)e->hidden * sizeof(float));
}

static void multiply(void *arg, int64_t index, uint32_t thread) {
  const phase *p = arg;
  const hn_experts *e = p->job->of;
  const int64_t expert = index / p->blocks, from = index % p->blocks * p->per_block,
                end = hn_min(from + p->per_block, p->columns);
  const int64_t first = p->l->begin[expert], rows = p->l->begin[expert + 1] - first;
  const int64_t depth = p->which == HN_EXPERTS_SECOND ? e->inter : e->hidden;
  if (rows > 0 && from < end)
    p->job->product(p->job->context, p->which, expert, p->from + first * depth, rows, from, end,
                    p->to + first * p->columns, thread);
}

/* The function of the gate, or of what has none. */
static hone_pw_op function_of(const hn_experts *e) {
  switch (e->act) {
  case HN_EXPERT_RELU:
  case HN_EXPERT_RELU2: return HONE_PW_RELU;
  case HN_EXPERT_GELU:
  case HN_EXPERT_GEGLU: return HONE_PW_GELU_TANH;
  case HN_EXPERT_SILU:
  case HN_EXPERT_SWIGLU: return HONE_PW_SILU;
  case HN_EXPERT_IDENTITY: break;
  }
  return HONE_PW_NONE;
}

/* What enters fc2 of one token: as hn_experts_activate, by vectors. */
static void activate_row(const hn_experts *e, hn_isa isa, const float *first, const float *third,
                         float *out) {
  const int64_t n = e->inter, step = e->pairs == HN_EXPERT_ALTERNATE ? 2 : 1;
  const float *value = e->pairs == HN_EXPERT_ALTERNATE ? first + 1
                       : e->pairs == HN_EXPERT_HALVES  ? first + n
                                                       : third;
  const bool limited = e->act == HN_EXPERT_SWIGLU;
  const float most = limited ? e->limit : INFINITY, more = limited ? e->beta : 0,
              param[2] = {limited ? e->alpha : 1, 0};
  for (int64_t i = 0; i < n; i++) out[i] = first[i * step] > most ? most : first[i * step];
  if (function_of(e) != HONE_PW_NONE) hn_act_find(function_of(e), isa)(out, (size_t)n, param);
  if (e->act == HN_EXPERT_RELU2)
    for (int64_t i = 0; i < n; i++) out[i] *= out[i];
  for (int64_t i = 0; i < n && value; i++) {
    const float v = value[i * step], low = v > most ? most : v;
    out[i] *= (low < -most ? -most : low) + more;
  }
}

static void activate(void *arg, int64_t index, uint32_t thread) {
  const phase *p = arg;
  const hn_experts *e = p->job->of;
  (void)thread;
  const int64_t end = hn_min((index + 1) * p->per_task, routes(e));
  for (int64_t i = index * p->per_task; i < end; i++)
    activate_row(e, p->job->isa, p->l->first + i * wide(e), e->third ? p->l->third + i * e->inter : NULL,
                 p->l->middle + i * e->inter);
}

static void add_up(void *arg, int64_t index, uint32_t thread) {
  const phase *p = arg;
  const hn_experts *e = p->job->of;
  (void)thread;
  const int64_t end = hn_min((index + 1) * p->per_task, e->tokens);
  for (int64_t t = index * p->per_task; t < end; t++) {
    float *y = p->y + t * e->hidden;
    for (int64_t j = 0; j < e->k; j++) {
      const int64_t route = t * e->k + j;
      const float w = HN_FAULT("experts_weight") ? 1 : p->l->weight[route],
                  *a = p->l->answer + (int64_t)p->l->place[route] * e->hidden;
      for (int64_t i = 0; i < e->hidden; i++) y[i] = j ? y[i] + w * a[i] : w * a[i];
    }
  }
}

static void product(phase *p, int which, const float *from, float *to, int64_t columns) {
  const hone_step_run *r = p->job->run;
  const int64_t share = hn_div_up(columns, 4 * (int64_t)r->threads);
  p->which = which, p->from = from, p->to = to, p->columns = columns;
  p->per_block = r->threads > 1 ? hn_fill_up(share, p->job->grain) : hn_fill_up(columns, p->job->grain);
  p->blocks = hn_div_up(columns, p->per_block);
  r->parallel(r->pool, p->job->of->experts * p->blocks, multiply, p);
}

/* Places: experts in their order, within each the tokens in theirs. */
static void sort(const hn_experts *e, const layout *l) {
  memset(l->begin, 0, (size_t)(e->experts + 1) * sizeof *l->begin);
  for (int64_t i = 0; i < routes(e); i++) l->begin[l->expert[i] + 1]++;
  for (int64_t i = 0; i < e->experts; i++) l->begin[i + 1] += l->begin[i];
  for (int64_t i = 0; i < routes(e); i++) l->place[i] = l->begin[l->expert[i]]++;
  for (int64_t i = e->experts; i > 0; i--) l->begin[i] = l->begin[i - 1];
  l->begin[0] = 0;
}

void hn_experts_exec(const hn_experts_job *j, const float *x, const float *scores, const float *given,
                     float *y) {
  const hn_experts *e = j->of;
  const hone_step_run *r = j->run;
  layout l;
  lay_out(e, r->workspace, &l);
  for (int64_t t = 0; t < e->tokens; t++)
    hn_experts_route(e, scores + t * e->experts, given ? given + t * e->experts : NULL, l.expert + t * e->k,
                     l.weight + t * e->k);
  sort(e, &l);
  phase p = {.job = j, .l = &l, .x = x, .y = y, .per_task = 4096 / e->hidden + 1};
  r->parallel(r->pool, hn_div_up(routes(e), p.per_task), gather, &p);
  product(&p, HN_EXPERTS_FIRST, l.x, l.first, wide(e));
  if (e->third) product(&p, HN_EXPERTS_THIRD, l.x, l.third, e->inter);
  p.per_task = 512 / e->inter + 1;
  r->parallel(r->pool, hn_div_up(routes(e), p.per_task), activate, &p);
  product(&p, HN_EXPERTS_SECOND, l.middle, l.answer, e->hidden);
  p.per_task = 4096 / (e->hidden * e->k) + 1;
  r->parallel(r->pool, hn_div_up(e->tokens, p.per_task), add_up, &p);
}
