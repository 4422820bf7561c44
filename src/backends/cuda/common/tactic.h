/* How tactics of this backend are written down. A tactic that stands alone has its functions and ends in
 * HN_CUDA_TACTIC_DESC. Tactics that differ in a tile, an engine or an operator are a family: functions that
 * take what sets one tactic apart, and a line for each tactic.
 *
 * A family F (hn_wgmma, say) has a type F_config and the functions
 *   bool F_accepts(const hone_step *, const hone_machine *, const F_config *, hone_reason *why)
 *   double F_cost(const hone_step *, const hone_machine *, const F_config *)
 *   hone_status F_run(const hone_step_run *, const F_config *, hone_error *)
 *   void F_work(const hone_step *, const hone_machine *, hone_work *), or F_work is a macro: NULL
 * and, where blobs or workspace are wanted,
 *   hone_status F_need(const hone_step *, const hone_machine *, const F_config *, hone_tactic_need *,
 * hone_error *) hone_status F_prepack(const hone_step *, const hone_machine *, const F_config *, void *blob,
 * hone_error *) */
#ifndef HN_CUDA_COMMON_TACTIC_H
#define HN_CUDA_COMMON_TACTIC_H

#include <hone/plugin.h>

/* hone_tactic_desc.work of products on tensor cores that take f32: rounded to tf32 where the plan allows it,
 * else as three products of such parts. */
static inline void hn_cuda_tf32_work(const hone_step *s, hone_work *work) {
  if (s->input[0].desc.dtype != HONE_DTYPE_F32) return;
  work->arithmetic = HONE_ARITHMETIC_TF32;
  work->split = s->math < HONE_MATH_TF32;
  if (work->split) work->flops += 2 * 2 * s->cost.macs;
}

/* The descriptor; what follows ANCHOR are its functions: .accepts = accepts, ... */
#define HN_CUDA_TACTIC_DESC(NAME, ANCHOR, ...)                                                               \
  const struct hone_tactic_desc hn_cuda_tactic_##NAME = {HONE_DESC_HEAD(hone_tactic_desc),                   \
                                                         .name = #NAME,                                      \
                                                         .device = "cuda",                                   \
                                                         .anchor = ANCHOR,                                   \
                                                         .version = 1,                                       \
                                                         __VA_ARGS__}

/* A family's functions as a tactic's; what follows FAMILY is the config. */
#define HN_CUDA_TACTIC_OF(FAMILY, ...)                                                                       \
  static const FAMILY##_config config = {__VA_ARGS__};                                                       \
  static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                         \
    return FAMILY##_accepts(s, m, &config, why);                                                             \
  }                                                                                                          \
  static double cost(const hone_step *s, const hone_machine *m) { return FAMILY##_cost(s, m, &config); }     \
  static hone_status run(const hone_step_run *r, hone_error *error) {                                        \
    return FAMILY##_run(r, &config, error);                                                                  \
  }
#define HN_CUDA_TACTIC_NEED(FAMILY)                                                                          \
  static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n,                    \
                          hone_error *error) {                                                               \
    return FAMILY##_need(s, m, &config, n, error);                                                           \
  }
#define HN_CUDA_TACTIC_PREPACK(FAMILY)                                                                       \
  static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {     \
    return FAMILY##_prepack(s, m, &config, blob, error);                                                     \
  }

/* A tactic of a family: all that a tactic file has. */
#define HN_CUDA_TACTIC(NAME, ANCHOR, FAMILY, ...)                                                            \
  HN_CUDA_TACTIC_OF(FAMILY, __VA_ARGS__)                                                                     \
  HN_CUDA_TACTIC_NEED(FAMILY)                                                                                \
  HN_CUDA_TACTIC_PREPACK(FAMILY)                                                                             \
  HN_CUDA_TACTIC_DESC(NAME, ANCHOR, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,      \
                      .run = run, .work = FAMILY##_work)

/* The same without packing, and without workspace, too. */
#define HN_CUDA_TACTIC_UNPACKED(NAME, ANCHOR, FAMILY, ...)                                                   \
  HN_CUDA_TACTIC_OF(FAMILY, __VA_ARGS__)                                                                     \
  HN_CUDA_TACTIC_NEED(FAMILY)                                                                                \
  HN_CUDA_TACTIC_DESC(NAME, ANCHOR, .accepts = accepts, .cost = cost, .need = need, .run = run)
#define HN_CUDA_TACTIC_BARE(NAME, ANCHOR, FAMILY, ...)                                                       \
  HN_CUDA_TACTIC_OF(FAMILY, __VA_ARGS__)                                                                     \
  HN_CUDA_TACTIC_DESC(NAME, ANCHOR, .accepts = accepts, .cost = cost, .run = run)

#endif
