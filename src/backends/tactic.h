/* How tactics of any backend are written down. A tactic that stands alone is functions and one HN_TACTIC.
 * Tactics that differ in a tile, an engine or a rule are a family: functions that take what sets one tactic
 * apart, its configuration, and a line for each tactic.
 *
 * A family F ("hn_cuda_fold") has a type F_config and these functions, down to the last one that it needs;
 * the macro beside it is the one for a family that ends there:
 *
 *   bool F_accepts(const hone_step *, const hone_machine *, const F_config *, hone_reason *)
 *   double F_cost(const hone_step *, const hone_machine *, const F_config *)
 *   hone_status F_run(const hone_step_run *, const F_config *, hone_error *)            HN_TACTIC_PLAIN
 *   hone_status F_need(const hone_step *, const hone_machine *, const F_config *,
 *                      hone_tactic_need *, hone_error *)                                HN_TACTIC_SIZED
 *   hone_status F_prepack(const hone_step *, const hone_machine *, const F_config *,
 *                         void *blob, hone_error *)                                     HN_TACTIC_PACKED
 *   void F_work(const hone_step *, const hone_machine *, const F_config *,
 *               hone_work *)                                                            HN_TACTIC_COUNTED
 *   size_t F_shared(const hone_step *, const hone_machine *, const F_config *,
 *                   uint64_t *key)                 HN_TACTIC_PACKED_SHARED, HN_TACTIC_COUNTED_SHARED
 *
 * What follows FAMILY in these macros is the configuration: the initialiser of an F_config. A family's header
 * declares its functions by the HN_FAMILY_ macro of the same ending. */
#ifndef HN_BACKENDS_TACTIC_H
#define HN_BACKENDS_TACTIC_H

#include "base/error.h"

#include <hone/plugin.h>

/* The descriptor hn_<DEVICE>_tactic_<NAME>; what follows VERSION are its functions: .accepts = accepts... */
#define HN_TACTIC(DEVICE, NAME, ANCHOR, VERSION, ...)                                                        \
  const struct hone_tactic_desc hn_##DEVICE##_tactic_##NAME = {HONE_DESC_HEAD(hone_tactic_desc),             \
                                                               .name = #NAME,                                \
                                                               .device = #DEVICE,                            \
                                                               .anchor = ANCHOR,                             \
                                                               .version = VERSION,                           \
                                                               __VA_ARGS__}

/* What a tactic costs that does not take the step. */
#define HN_REFUSED_SECONDS 1e9

/* A step that was accepted once is refused later. */
static inline hone_status hn_not_described(const hone_step *s, const hone_reason *why, hone_error *error) {
  return hn_fail(error, HONE_ERROR_INTERNAL, "%s: %s", s->anchor, why->text);
}

/* accepts, need and prepack of a tactic whose blob is the HEAD that its describe(step, machine, HEAD *, why)
 * fills.
 */
#define HN_DESCRIBED(HEAD)                                                                                   \
  static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                         \
    HEAD head;                                                                                               \
    return describe(s, m, &head, why);                                                                       \
  }                                                                                                          \
  static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n,                    \
                          hone_error *error) {                                                               \
    (void)s, (void)m, (void)error;                                                                           \
    n->blob_bytes = sizeof(HEAD);                                                                            \
    return HONE_OK;                                                                                          \
  }                                                                                                          \
  static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {     \
    hone_reason why = {""};                                                                                  \
    return describe(s, m, blob, &why) ? HONE_OK : hn_not_described(s, &why, error);                          \
  }

/* accepts, cost, need and prepack of a tactic whose blob begins with the HEAD that its
 * describe(step, machine, HEAD *, why) fills, and goes on as that says:
 *
 *   double cost_of(const HEAD *, const hone_step *, const hone_machine *)       of a step that it takes
 *   void need_of(const HEAD *, const hone_step *, const hone_machine *, hone_tactic_need *)
 *   hone_status FILL(HEAD *, const hone_step *, void *blob, hone_error *)       the whole blob, with its head
 */
#define HN_DESCRIBED_SIZED(HEAD, FILL)                                                                       \
  static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                         \
    HEAD head;                                                                                               \
    return describe(s, m, &head, why);                                                                       \
  }                                                                                                          \
  static double cost(const hone_step *s, const hone_machine *m) {                                            \
    HEAD head;                                                                                               \
    return describe(s, m, &head, NULL) ? cost_of(&head, s, m) : HN_REFUSED_SECONDS;                          \
  }                                                                                                          \
  static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n,                    \
                          hone_error *error) {                                                               \
    HEAD head;                                                                                               \
    hone_reason why = {""};                                                                                  \
    if (!describe(s, m, &head, &why)) return hn_not_described(s, &why, error);                               \
    need_of(&head, s, m, n);                                                                                 \
    return HONE_OK;                                                                                          \
  }                                                                                                          \
  static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {     \
    HEAD head;                                                                                               \
    hone_reason why = {""};                                                                                  \
    return describe(s, m, &head, &why) ? FILL(&head, s, blob, error) : hn_not_described(s, &why, error);     \
  }

/* The same of a family F, whose describe knows the configuration, too:
 * describe(step, machine, config, HEAD *, why). */
#define HN_FAMILY_DESCRIBED(F, HEAD, FILL)                                                                   \
  bool F##_accepts(const hone_step *s, const hone_machine *m, const F##_config *config, hone_reason *why) {  \
    HEAD head;                                                                                               \
    return describe(s, m, config, &head, why);                                                               \
  }                                                                                                          \
  double F##_cost(const hone_step *s, const hone_machine *m, const F##_config *config) {                     \
    HEAD head;                                                                                               \
    return describe(s, m, config, &head, NULL) ? cost_of(&head, s, m) : HN_REFUSED_SECONDS;                  \
  }                                                                                                          \
  hone_status F##_need(const hone_step *s, const hone_machine *m, const F##_config *config,                  \
                       hone_tactic_need *n, hone_error *error) {                                             \
    HEAD head;                                                                                               \
    hone_reason why = {""};                                                                                  \
    if (!describe(s, m, config, &head, &why)) return hn_not_described(s, &why, error);                       \
    need_of(&head, s, m, n);                                                                                 \
    return HONE_OK;                                                                                          \
  }                                                                                                          \
  hone_status F##_prepack(const hone_step *s, const hone_machine *m, const F##_config *config, void *blob,   \
                          hone_error *error) {                                                               \
    HEAD head;                                                                                               \
    hone_reason why = {""};                                                                                  \
    return describe(s, m, config, &head, &why) ? FILL(&head, s, blob, error)                                 \
                                               : hn_not_described(s, &why, error);                           \
  }

/* Where run finds what its blob has from byte `at`, which `shared` says, on. */
static inline const void *hn_shared_at(const hone_step_run *r, int64_t at) {
  return r->shared ? r->shared : (const char *)r->blob + at;
}

/* The declarations of a family's functions, down to the last one that it needs. */
#define HN_FAMILY_PLAIN(F)                                                                                   \
  bool F##_accepts(const hone_step *s, const hone_machine *m, const F##_config *config, hone_reason *why);   \
  double F##_cost(const hone_step *s, const hone_machine *m, const F##_config *config);                      \
  hone_status F##_run(const hone_step_run *r, const F##_config *config, hone_error *error)
#define HN_FAMILY_SIZED(F)                                                                                   \
  HN_FAMILY_PLAIN(F);                                                                                        \
  hone_status F##_need(const hone_step *s, const hone_machine *m, const F##_config *config,                  \
                       hone_tactic_need *need, hone_error *error)
#define HN_FAMILY_PACKED(F)                                                                                  \
  HN_FAMILY_SIZED(F);                                                                                        \
  hone_status F##_prepack(const hone_step *s, const hone_machine *m, const F##_config *config, void *blob,   \
                          hone_error *error)
#define HN_FAMILY_COUNTED(F)                                                                                 \
  HN_FAMILY_PACKED(F);                                                                                       \
  void F##_work(const hone_step *s, const hone_machine *m, const F##_config *config, hone_work *work)

#define HN_FAMILY_SHARED(F)                                                                                  \
  size_t F##_shared(const hone_step *s, const hone_machine *m, const F##_config *config, uint64_t *key)

/* A family's functions as those of the tactic NAME, one each. */
#define HN_TACTIC_ACCEPTS(NAME, FAMILY)                                                                      \
  static bool NAME##_accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                  \
    return FAMILY##_accepts(s, m, &NAME##_config, why);                                                      \
  }
#define HN_TACTIC_COST(NAME, FAMILY)                                                                         \
  static double NAME##_cost(const hone_step *s, const hone_machine *m) {                                     \
    return FAMILY##_cost(s, m, &NAME##_config);                                                              \
  }
#define HN_TACTIC_NEED(NAME, FAMILY)                                                                         \
  static hone_status NAME##_need(const hone_step *s, const hone_machine *m, hone_tactic_need *n,             \
                                 hone_error *error) {                                                        \
    return FAMILY##_need(s, m, &NAME##_config, n, error);                                                    \
  }
#define HN_TACTIC_PREPACK(NAME, FAMILY)                                                                      \
  static hone_status NAME##_prepack(const hone_step *s, const hone_machine *m, void *blob,                   \
                                    hone_error *error) {                                                     \
    return FAMILY##_prepack(s, m, &NAME##_config, blob, error);                                              \
  }
#define HN_TACTIC_RUN(NAME, FAMILY)                                                                          \
  static hone_status NAME##_run(const hone_step_run *r, hone_error *error) {                                 \
    return FAMILY##_run(r, &NAME##_config, error);                                                           \
  }
#define HN_TACTIC_WORK(NAME, FAMILY)                                                                         \
  static void NAME##_work(const hone_step *s, const hone_machine *m, hone_work *work) {                      \
    FAMILY##_work(s, m, &NAME##_config, work);                                                               \
  }
#define HN_TACTIC_SHARES(NAME, FAMILY)                                                                       \
  static size_t NAME##_shared(const hone_step *s, const hone_machine *m, uint64_t *key) {                    \
    return FAMILY##_shared(s, m, &NAME##_config, key);                                                       \
  }
#define HN_TACTIC_CONFIGURED(NAME, FAMILY, ...)                                                              \
  static const FAMILY##_config NAME##_config = {__VA_ARGS__};                                                \
  HN_TACTIC_ACCEPTS(NAME, FAMILY)                                                                            \
  HN_TACTIC_COST(NAME, FAMILY)                                                                               \
  HN_TACTIC_RUN(NAME, FAMILY)

/* A tactic of a family: without blob and workspace; with workspace; with a blob, too; and with a count of
 * what it computes. */
#define HN_TACTIC_PLAIN(DEVICE, NAME, ANCHOR, VERSION, FAMILY, ...)                                          \
  HN_TACTIC_CONFIGURED(NAME, FAMILY, __VA_ARGS__)                                                            \
  HN_TACTIC(DEVICE, NAME, ANCHOR, VERSION, .accepts = NAME##_accepts, .cost = NAME##_cost, .run = NAME##_run)
#define HN_TACTIC_SIZED(DEVICE, NAME, ANCHOR, VERSION, FAMILY, ...)                                          \
  HN_TACTIC_CONFIGURED(NAME, FAMILY, __VA_ARGS__)                                                            \
  HN_TACTIC_NEED(NAME, FAMILY)                                                                               \
  HN_TACTIC(DEVICE, NAME, ANCHOR, VERSION, .accepts = NAME##_accepts, .cost = NAME##_cost,                   \
            .need = NAME##_need, .run = NAME##_run)
#define HN_TACTIC_PACKED(DEVICE, NAME, ANCHOR, VERSION, FAMILY, ...)                                         \
  HN_TACTIC_CONFIGURED(NAME, FAMILY, __VA_ARGS__)                                                            \
  HN_TACTIC_NEED(NAME, FAMILY)                                                                               \
  HN_TACTIC_PREPACK(NAME, FAMILY)                                                                            \
  HN_TACTIC(DEVICE, NAME, ANCHOR, VERSION, .accepts = NAME##_accepts, .cost = NAME##_cost,                   \
            .need = NAME##_need, .prepack = NAME##_prepack, .run = NAME##_run)
#define HN_TACTIC_COUNTED(DEVICE, NAME, ANCHOR, VERSION, FAMILY, ...)                                        \
  HN_TACTIC_CONFIGURED(NAME, FAMILY, __VA_ARGS__)                                                            \
  HN_TACTIC_NEED(NAME, FAMILY)                                                                               \
  HN_TACTIC_PREPACK(NAME, FAMILY)                                                                            \
  HN_TACTIC_WORK(NAME, FAMILY)                                                                               \
  HN_TACTIC(DEVICE, NAME, ANCHOR, VERSION, .accepts = NAME##_accepts, .cost = NAME##_cost,                   \
            .need = NAME##_need, .prepack = NAME##_prepack, .run = NAME##_run, .work = NAME##_work)

/* The last two with a blob of which plans have a part in common. */
#define HN_TACTIC_PACKED_SHARED(DEVICE, NAME, ANCHOR, VERSION, FAMILY, ...)                                  \
  HN_TACTIC_CONFIGURED(NAME, FAMILY, __VA_ARGS__)                                                            \
  HN_TACTIC_NEED(NAME, FAMILY)                                                                               \
  HN_TACTIC_PREPACK(NAME, FAMILY)                                                                            \
  HN_TACTIC_SHARES(NAME, FAMILY)                                                                             \
  HN_TACTIC(DEVICE, NAME, ANCHOR, VERSION, .accepts = NAME##_accepts, .cost = NAME##_cost,                   \
            .need = NAME##_need, .prepack = NAME##_prepack, .run = NAME##_run, .shared = NAME##_shared)
#define HN_TACTIC_COUNTED_SHARED(DEVICE, NAME, ANCHOR, VERSION, FAMILY, ...)                                 \
  HN_TACTIC_CONFIGURED(NAME, FAMILY, __VA_ARGS__)                                                            \
  HN_TACTIC_NEED(NAME, FAMILY)                                                                               \
  HN_TACTIC_PREPACK(NAME, FAMILY)                                                                            \
  HN_TACTIC_WORK(NAME, FAMILY)                                                                               \
  HN_TACTIC_SHARES(NAME, FAMILY)                                                                             \
  HN_TACTIC(DEVICE, NAME, ANCHOR, VERSION, .accepts = NAME##_accepts, .cost = NAME##_cost,                   \
            .need = NAME##_need, .prepack = NAME##_prepack, .run = NAME##_run, .work = NAME##_work,          \
            .shared = NAME##_shared)

#endif
