/* The tactics of lt_step.h: the algorithms for a product are kept with the device. */
#include "backends/cuda/driver/cuda.h"
#include "backends/cuda/libraries/library_step.h"
#include "backends/cuda/libraries/lt_answer.h"
#include "backends/cuda/libraries/lt_step.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/half.h"

bool hn_lt_accepts(const hone_step *s, const hone_machine *m, const hn_lt_config *config, hone_reason *why) {
  hn_lt_step l;
  if (!(m->libraries & HONE_LIB_CUBLASLT)) return hn_refuse(why, "cuBLASLt is not on this machine");
  return config->describe(s, &l, why) && hn_lt_answers(&l.spec, m, config->candidate, why);
}

static const void *place(const hone_step_run *r, const hn_lt_source *x) {
  if (!x->there) return NULL;
  return x->in_blob ? (const unsigned char *)r->blob + x->at : r->in[x->input];
}

hone_status hn_lt_run(const hone_step_run *r, const hn_lt_config *config, hone_error *error) {
  hn_lt_step l;
  hone_reason why = {""};
  if (!config->describe(r->step, &l, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "cuBLASLt: %s", why.text);
  const hn_lt_place at = {.a = place(r, &l.a),
                          .b = place(r, &l.b),
                          .c = place(r, &l.c),
                          .bias = place(r, &l.bias),
                          .d = r->out[0],
                          .workspace = r->workspace};
  return hn_lt_launch(hn_cuda_queue_of(r), &l.spec, config->candidate, &at, error);
}

/* Later candidates are for measurements: the heuristics' first is taken where there are none. */
double hn_lt_cost(const hone_step *s, const hone_machine *m, const hn_lt_config *config) {
  hn_lt_step l;
  if (!config->describe(s, &l, NULL)) return HN_REFUSED_SECONDS;
  const hn_lt_spec *p = &l.spec;
  /* What is added costs twice its bytes (one H200: 1.3 to 1.4 times the time of the product alone). */
  double bytes = hn_cuda_bytes(s) + 2 * hn_cuda_epilogue_bytes(s);
  /* Exact f32 of 16 to 32 columns (mobilenetv2 at 256): 1.2 to 1.7 times. */
  if (p->n <= 32 && hn_library_exact(p->dtype, p->math)) bytes *= 1.4;
  return hn_library_seconds(m, p->dtype, p->math, (double)p->m * (double)p->batches, (double)p->n,
                            (double)p->k, bytes, 0.62) *
         (1 + 0.02 * config->candidate);
}

hone_status hn_lt_need(const hone_step *s, const hone_machine *m, const hn_lt_config *config,
                       hone_tactic_need *n, hone_error *error) {
  hn_lt_step l;
  hone_reason why = {""};
  (void)m;
  if (!config->describe(s, &l, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "cuBLASLt: %s", why.text);
  n->blob_bytes = l.blob_bytes;
  n->workspace_bytes = hn_library_workspace(s);
  n->packed = l.packed;
  return HONE_OK;
}

hone_status hn_lt_prepack(const hone_step *s, const hone_machine *m, const hn_lt_config *config, void *blob,
                          hone_error *error) {
  hn_lt_step l;
  hone_reason why = {""};
  (void)m;
  if (!config->describe(s, &l, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "cuBLASLt: %s", why.text);
  hn_lt_pack(s, &l, blob);
  return HONE_OK;
}

size_t hn_lt_shared(const hone_step *s, const hone_machine *m, const hn_lt_config *config, uint64_t *key) {
  hn_lt_step l;
  (void)m;
  if (!config->describe(s, &l, NULL)) return 0;
  const int64_t of[] = {l.spec.dtype,   l.spec.k, l.columns,          l.depth,
                        l.b_k,          l.b_n,    l.b.in_blob,        (int64_t)l.b.at,
                        l.bias.in_blob, l.packed, (int64_t)l.bias.at, hn_f32_bits(l.bias_scale)};
  return hn_cuda_shared_blob("cuBLASLt", of, sizeof of / sizeof *of, key);
}

void hn_lt_work(const hone_step *s, const hone_machine *m, const hn_lt_config *config, hone_work *work) {
  (void)m, (void)config;
  if (s->input[0].desc.dtype == HONE_DTYPE_F32 && s->math >= HONE_MATH_TF32)
    work->arithmetic = HONE_ARITHMETIC_TF32;
}
