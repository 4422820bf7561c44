/* Finding what a kernel of its own would make faster. */
#ifndef HN_API_CANDIDATES_H
#define HN_API_CANDIDATES_H

#include "api/api.h"
#include "base/arena.h"
#include "base/vec.h"
#include "insight/profile/bound.h"

#include <hone/candidates.h>

enum {
  HN_COMPOUND_NODES = 6,  /* a pattern of more is hard to match and to write */
  HN_COMPOUND_INPUTS = 24 /* different values that one reads from outside */
};

/* What candidates are made of: a step of the plan with what was measured of it, or a view between steps. */
typedef struct hn_block {
  int32_t step; /* -1: a view, which takes no time */
  uint32_t n_nodes;
  const hone_node *const *node;
  const hone_layer *layer; /* NULL: it was not seen in the runs */
  const hone_step_fact *fact;
  double ms;
  bool member, product; /* may be part of a compound; multiplies matrices, so that it may only begin one */
  const hn_value *exit; /* the one value that others read; NULL: there are several, or none */
} hn_block;

/* Another plan of the model, which is only looked at. */
typedef struct hn_other_plan {
  int level;
  bool same_level; /* it differs in other options */
  hone_plan *plan;
} hn_other_plan;

typedef struct hn_candidate_search {
  const hone_plan *handle;
  const hn_plan *plan;
  const hone_profile *profile;
  const hone_facts *facts;
  const hone_thresholds *thresholds;
  hn_arena *arena;
  bool failed; /* out of memory: sticky */
  uint32_t n_blocks;
  hn_block *block;
  int32_t *maker; /* by id of a value: the block that makes it, -1: none */
  double wall_ms, gap_ms, start_ms;
  uint32_t n_others;
  hn_other_plan other[3];
  HN_VEC(hone_candidate) found;
} hn_candidate_search;

/* What one kernel for a place would save; candidates.h says how. */
typedef struct hn_saving {
  uint32_t steps;
  double ms, bytes, all_bytes, traffic_ms, starts_ms, saved_ms; /* bytes: those of all_bytes that count */
  bool at_roof;                                                 /* the roof is what limits saved_ms */
} hn_saving;

/* Blocks that are connected by values which nobody else reads; block[0] is the last one. */
typedef struct hn_group {
  uint32_t n, form;
  uint32_t block[HN_COMPOUND_NODES];
  hn_saving saving;
} hn_group;

/* What equal places have in common. */
typedef struct hn_form {
  const char *key, *pattern, *operators, *name;
} hn_form;

typedef struct hn_spelling {
  uint32_t n_nodes;
  const hone_node *node[HN_COMPOUND_NODES]; /* in order of the pattern's lines */
  hn_form form;
} hn_spelling;

typedef struct hn_compounds {
  HN_VEC(hn_group) places;
  HN_VEC(hn_form) forms;
} hn_compounds;

/* Fills block, maker and the times. False: out of memory. */
bool hn_candidate_blocks(hn_candidate_search *s);
/* The block that makes the value; NULL: it comes from outside, or is a constant. */
const hn_block *hn_candidate_maker(const hn_candidate_search *s, const hn_value *v);
/* The block of a node; -1: none. */
int32_t hn_candidate_block_of(const hn_candidate_search *s, const hone_node *n);
bool hn_group_has(const hn_group *p, int32_t block);
uint32_t hn_group_nodes(const hn_candidate_search *s, const hn_group *p);

/* All places of 2 to HN_COMPOUND_NODES nodes and at least two steps, with their forms and savings. */
bool hn_compounds_list(hn_candidate_search *s, hn_compounds *out);
/* Writes a place as a pattern. False: out of memory, or it has too many inputs. */
bool hn_group_spell(const hn_candidate_search *s, const hn_group *p, hn_arena *arena, hn_spelling *out);
hn_saving hn_group_saving(const hn_candidate_search *s, const hn_group *p);

/* Each adds to s->found. */
void hn_find_compounds(hn_candidate_search *s);
void hn_find_fallbacks(hn_candidate_search *s);
void hn_find_misfits(hn_candidate_search *s);

/* Previews of other levels, and of this one without what was switched off. */
hone_status hn_other_plans_make(hn_candidate_search *s, hone_engine *engine, hone_model *model,
                                const hone_plan_options *options, hone_error *error);
void hn_other_plans_free(hn_candidate_search *s);
/* The other plan that makes fewer steps of the place; NULL: none. *steps: how many. */
const hn_other_plan *hn_other_fuses(const hn_candidate_search *s, const hn_group *p, uint32_t *steps);
/* The other plan in which a tactic does all nodes of this step; NULL: none. */
const hn_other_plan *hn_other_takes(const hn_candidate_search *s, const hn_step *step);
/* Why an installed custom operator does not take these nodes, in words; NULL: there is none for them. */
const char *hn_installed_misses(hn_candidate_search *s, const hn_group *p);
/* The other plan that does the step by another tactic, or as part of a larger one; NULL: none. */
const hn_other_plan *hn_other_differs(const hn_candidate_search *s, const hn_step *step);
/* "hone at --level 3", or without what is switched off. */
const char *hn_other_words(hn_candidate_search *s, const hn_other_plan *other);

/* Names of the nodes of the file that these stand for, and of the steps, as a place's. False: no memory. */
bool hn_candidate_names(hn_candidate_search *s, const hone_node *const *node, uint32_t n, const int32_t *step,
                        uint32_t n_steps, hone_candidate_place *out);
/* Are all of these functions of the f32 elements at one place, of tensors of one shape and of numbers? */
bool hn_candidate_elementwise(const hone_node *const *node, uint32_t n);
/* printf into the arena; "" when out of memory. */
const char *hn_candidate_say(hn_candidate_search *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Share, gain by Amdahl. */
void hn_candidate_gain(const hn_candidate_search *s, hone_candidate *c);
/* At least min_gain. */
bool hn_candidate_pays(const hn_candidate_search *s, const hone_candidate *c);
void hn_candidate_add(hn_candidate_search *s, const hone_candidate *c);
double hn_candidate_threshold(const hn_candidate_search *s, const char *name);

#endif
