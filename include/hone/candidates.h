/* When is a custom operator worth writing? What of a measured model one kernel of its own would make faster,
 * by how much, and what is against it.
 *
 * One of three conditions must hold: several operators follow each other again and again and are no one step
 * (a kernel for all of them reads and writes less), an operator has no fast kernel (it runs by its reference,
 * on an accelerator on the host with copies around it), or a kernel does not fit the sizes it is given.
 *
 * The prediction of a compound, for each place where it occurs:
 *
 *   saved = min(traffic + starts, time - roof)
 *   traffic: for every step, the bytes that it writes for or reads from the others of the place, over the
 *            bandwidth of the memory level that holds what the step touches. Bandwidth is measured on this
 *            machine (hone_roofs_measure). Steps that compute limits get nothing for their bytes
 *   starts:  (steps - 1) * (gap + start): gap is what lay between two steps in these runs, start what waking
 *            the threads takes (threshold step_overhead; never more than the shortest step took; none with
 *            one thread or on an accelerator)
 *   time:    the medians of its steps
 *   roof:    what all of its arithmetic and the bytes that are left take at the threshold reachable_roof of
 *            the measured roofs
 *
 * A kernel that cannot hold the values between the operators (a sum over a whole tensor that is read again)
 * saves less. An operator without a fast kernel is compared with a plain vectorised one: half of the measured
 * roof, where no roof is known a quarter of its time, on the processor never more than (numbers in a vector)
 * * threads times as fast; its copies go. A kernel that does not fit is compared with the median share of the
 * roof that the other steps of its kind reach. The whole gains by Amdahl: 1 / ((1 - p) + p / s), p the share
 * of the typical run, s = time / (time - saved). */
#ifndef HONE_CANDIDATES_H
#define HONE_CANDIDATES_H

#include <hone/insight.h>
#include <hone/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which condition holds: name in the code, word in JSON. */
#define HONE_CANDIDATE_KINDS(X)                                                                              \
  X(COMPOUND, "compound") /* several operators, no one step */                                               \
  X(FALLBACK, "fallback") /* no fast kernel: the reference, on an accelerator the host */                    \
  X(MISFIT, "misfit")     /* a kernel that does not fit the sizes */

typedef enum hone_candidate_kind {
#define X(id, word) HONE_CANDIDATE_##id,
  HONE_CANDIDATE_KINDS(X)
#undef X
} hone_candidate_kind;

/* "?" for a number that is none. */
HONE_API const char *hone_candidate_kind_name(hone_candidate_kind kind);

#define HONE_CANDIDATE_VERDICTS(X)                                                                           \
  X(WORTH, "worth_it")                                                                                       \
  X(SMALL, "small_gain")  /* the whole would gain less than the threshold min_gain */                        \
  X(BOUND, "other_bound") /* something else limits it than what the kernel would save */                     \
  X(EXISTING, "existing") /* hone can do it: another level, what is off, an installed operator */            \
  X(ROOF, "at_the_roof")  /* it is about as fast as the machine allows */

typedef enum hone_candidate_verdict {
#define X(id, word) HONE_CANDIDATE_IS_##id,
  HONE_CANDIDATE_VERDICTS(X)
#undef X
} hone_candidate_verdict;

/* "?" for a number that is none. */
HONE_API const char *hone_candidate_verdict_name(hone_candidate_verdict verdict);

/* One occurrence. */
typedef struct hone_candidate_place {
  uint32_t n_nodes, n_steps;
  const char *const *node; /* [n_nodes] of the file, in order of execution */
  const char *const *step; /* [n_steps] of the plan */
  double ms, saved_ms;     /* of a typical run, copies included */
} hone_candidate_place;

typedef struct hone_candidate {
  hone_candidate_kind kind;
  hone_candidate_verdict verdict;
  const char *why;       /* the verdict in words */
  const char *name;      /* for the operator to be made: letters and digits */
  const char *operators; /* "Softmax + Mul" */
  const char *pattern;   /* of compounds, a line for each node ("%y = Mul(%a, %b)"); else NULL */
  uint32_t n_places;
  const hone_candidate_place *place; /* [n_places] slowest first */
  double ms, share_pct;              /* of all places; of the typical run */
  double copies_ms;                  /* of ms: copies to and from the host because of it */
  double bytes;                      /* that would not travel any more, a run */
  double traffic_ms, starts_ms;      /* what goes with these bytes, and with the starts of steps */
  double saved_ms;                   /* of a typical run */
  double gain_pct;                   /* (before / after - 1) * 100 of the whole */
  double roof_pct, usual_pct;        /* of misfits: share of the roof, and that of the others of its kind */
  bool elementwise; /* functions of the f32 elements at one place, all of one shape, and of numbers */
  int level;        /* EXISTING: the level that does it, -1: it is no matter of the level */
} hone_candidate;

typedef struct hone_candidates {
  uint32_t n;
  const hone_candidate *candidate; /* those that are worth it, by gain; then the others, by time */
  uint32_t n_worth;
  double wall_ms; /* of a typical run */
  void *impl;     /* owns everything */
} hone_candidates;

/* Looks at a plan by the record of its own runs (hone_subjects_record, all layers). model and options: what
 * the plan was made from, for previews of other levels; options NULL: defaults. thresholds NULL: defaults.
 * HONE_ERROR_USAGE: the profile is not of this plan, or only of some layers. Free with hone_candidates_free,
 * before plan and profile. */
HONE_API hone_status hone_candidates_find(const hone_plan *plan, hone_model *model,
                                          const hone_plan_options *options, const hone_thresholds *thresholds,
                                          const hone_profile *profile, hone_candidates *out,
                                          hone_error *error);
HONE_API void hone_candidates_free(hone_candidates *candidates); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
