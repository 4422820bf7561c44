/* Conv steps through Winograd's algorithm, shared by the tactics of the different tile sizes. */
#ifndef HN_CPU_COMMON_WINOGRAD_STEP_H
#define HN_CPU_COMMON_WINOGRAD_STEP_H

#include <hone/plugin.h>

bool hn_winograd_accepts(const hone_step *s, const hone_machine *m, int64_t tile, hone_reason *why);
double hn_winograd_cost(const hone_step *s, const hone_machine *m, int64_t tile);
hone_status hn_winograd_need(const hone_step *s, const hone_machine *m, int64_t tile, hone_tactic_need *n,
                             hone_error *error);
hone_status hn_winograd_prepack(const hone_step *s, const hone_machine *m, int64_t tile, void *blob,
                                hone_error *error);
hone_status hn_winograd_run(const hone_step_run *r, hone_error *error);
void hn_winograd_work(const hone_step *s, const hone_machine *m, int64_t tile, hone_work *work);

/* Defines the tactic `name_` with tiles of tile_ x tile_ output pixels. */
#define HN_WINOGRAD_TACTIC(name_, tile_)                                                                     \
  static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                         \
    return hn_winograd_accepts(s, m, tile_, why);                                                            \
  }                                                                                                          \
  static double cost(const hone_step *s, const hone_machine *m) { return hn_winograd_cost(s, m, tile_); }    \
  static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n,                    \
                          hone_error *error) {                                                               \
    return hn_winograd_need(s, m, tile_, n, error);                                                          \
  }                                                                                                          \
  static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {     \
    return hn_winograd_prepack(s, m, tile_, blob, error);                                                    \
  }                                                                                                          \
  static void work(const hone_step *s, const hone_machine *m, hone_work *w) {                                \
    hn_winograd_work(s, m, tile_, w);                                                                        \
  }                                                                                                          \
  const struct hone_tactic_desc hn_tactic_##name_ = {HONE_DESC_HEAD(hone_tactic_desc),                       \
                                                     .name = #name_,                                         \
                                                     .device = "cpu",                                        \
                                                     .anchor = "Conv",                                       \
                                                     .version = 1,                                           \
                                                     .accepts = accepts,                                     \
                                                     .cost = cost,                                           \
                                                     .need = need,                                           \
                                                     .prepack = prepack,                                     \
                                                     .run = hn_winograd_run,                                 \
                                                     .work = work}

#endif
