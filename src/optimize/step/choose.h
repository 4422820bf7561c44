/* Which tactic a step gets. */
#ifndef HN_OPTIMIZE_STEP_CHOOSE_H
#define HN_OPTIMIZE_STEP_CHOOSE_H

#include "optimize/step/refusal.h"
#include "optimize/step/step.h"

typedef struct hn_candidate {
  const hone_tactic_desc *tactic;
  double predicted; /* seconds, by its own cost model */
} hn_candidate;
enum { HN_MAX_CANDIDATES = 64 }; /* GPUs have more than forty for a convolution */
/* All tactics that take the step and are not masked, in the order of the backend's list; refusals go into
 * *why (may be NULL). */
uint32_t hn_accepting_tactics(const hn_plan *plan, const hone_step *step, hn_candidate out[HN_MAX_CANDIDATES],
                              hn_refusals *why);
/* Index of the one with the least predicted time: what an untuned plan chooses. n > 0. */
uint32_t hn_cheapest(const hn_candidate *list, uint32_t n);
/* The same in one call; NULL: nobody takes it. For choices in a run: who is alone is not asked for its cost.
 */
const hone_tactic_desc *hn_cheapest_tactic(const hn_plan *plan, const hone_step *step);

/* Whether `hone tune` leaves out candidate i: where a kernel must be compiled to be measured, what is
 * predicted to take three times as long as the fastest. Of 170 layers on one H200 none that was fastest was
 * predicted twice as slow as the first. */
bool hn_hopeless(const hn_plan *plan, const hn_candidate *list, uint32_t n, uint32_t i);

/* How long a step takes with the tactic that it would get. */
typedef struct hn_estimate {
  double seconds;   /* measured where it was, else predicted */
  double predicted; /* by the cost model, in any case */
  bool measured;
} hn_estimate;
/* The tactic for a step (by measurement, else the lowest predicted time) or NULL; lists refusals in *why (may
 * be NULL). */
const hone_tactic_desc *hn_choose_tactic(const hn_plan *plan, const hone_step *step, hn_estimate *estimate,
                                         hn_refusals *why);
/* Some tactic that takes the step, or NULL, for who asks no more than whether there is one: the others are
 * not asked, and none what it costs. *estimate is nothing. */
const hone_tactic_desc *hn_any_tactic(const hn_plan *plan, const hone_step *step, hn_estimate *estimate);

/* What lowering chose, call by call: recorded while a plan is built, followed when it is loaded. */
typedef struct hn_decision {
  const hone_tactic_desc *tactic; /* NULL: nobody took it */
  hn_estimate estimate;
} hn_decision;

struct hn_decisions {
  HN_VEC(hn_decision) list;
  bool failed; /* while recording: out of memory */
  size_t at;
  const char *broken; /* while following: why it cannot be */
};

/* Reads the masks ("conv_*,-*_avx512"). */
hone_status hn_plan_masks(hn_plan *plan, const char *text, hone_error *error);
/* Notes in every step its signature, whether its tactic was measured, and the threads that go with
 * it. */
hone_status hn_plan_settle(hn_plan *plan, hone_error *error);

#endif
