/* A search for mixed precision while it goes on. Inside of api/mixed only.
 *
 *   mixed.c   hone_mix: the stages, and what is reported
 *   units.c   which layers are decided together
 *   ladder.c  which types a unit may have, by measured times
 *   together.c  whether what is not faster alone is so among the others
 *   times.c   what each unit takes in each type; the result against the input
 *   build.c   the model of a choice
 *   score.c   what a choice loses
 *   search.c  which units go back */
#ifndef HN_API_MIXED_H
#define HN_API_MIXED_H

#include "base/arena.h"
#include "base/vec.h"
#include "improve/quantize/quantize.h"

#include <hone/mixed.h>

/* A model that can run. */
typedef struct hn_mix_side {
  hone_model *model; /* retained */
  hone_plan *plan;
  hone_context *context;
} hn_mix_side;

/* Rounds in which all types are timed in turn. */
enum { HN_MIX_ROUNDS = HONE_TUNE_ROUNDS };

/* Layers that are decided together, because some plan runs them in one step. */
typedef struct hn_mix_unit {
  bool follows;                 /* no product among them: its time lies in what is around it */
  bool timed[HONE_MIXED_TYPES]; /* in all rounds */
  double ms[HONE_MIXED_TYPES][HN_MIX_ROUNDS];
  double median[HONE_MIXED_TYPES]; /* NaN: not timed */
  double noise[HONE_MIXED_TYPES];  /* NaN: not known */
  uint32_t rungs, rung;            /* types it may have, narrowest first; the last is f32. The present one */
  hone_mixed_type ladder[HONE_MIXED_TYPES];
  bool together;  /* it may have 8 bits because the whole is faster so */
  bool held_back; /* the last step back was for the samples held out */
} hn_mix_unit;

typedef struct hn_mix_layer {
  const char *name, *op_type, *why;
  const uint32_t *nodes; /* of the file */
  uint32_t n_nodes;
  int32_t unit; /* -1: none */
} hn_mix_layer;

/* The halves. */
enum { HN_MIX_CHOOSES = 0, HN_MIX_HELD_OUT = 1 };

typedef struct hn_mixing {
  const hone_mixed_options *o;
  hone_quantize_options q; /* to 8 bits, on the half that chooses */
  hone_mixed_report *report;
  hn_arena arena;
  hone_engine *engine;
  char ranges[512]; /* a file of our own; "": the caller's, or none */
  hn_mix_side wide;
  hn_quantize_samples *samples[2]; /* of each half */
  HN_VEC(hn_mix_layer) layers;
  uint32_t n_units;
  hn_mix_unit *unit;
  HN_VEC(const char *) warnings;
  uint64_t begun; /* ns */
} hn_mixing;

bool hn_mix_tell(const hn_mixing *m, const char *what, uint32_t done, uint32_t total);
bool hn_mix_late(const hn_mixing *m); /* max_seconds are over */

/* Retains the model. apart: no step is of several layers that could have one each. */
hone_status hn_mix_open(hn_mixing *m, hone_model *model, bool apart, hn_mix_side *out, hone_error *error);
void hn_mix_close(hn_mix_side *side);
/* The inputs of a sample, as the wide plan wants them. in: [plan inputs] */
hone_status hn_mix_read(hn_mixing *m, int half, uint32_t i, const hone_tensor **in, hone_error *error);

/* ---- build.c */

/* All that can be narrow is; *out NULL where nothing can. Fills *made, which is the caller's to free. */
hone_status hn_mix_uniform(hn_mixing *m, hone_mixed_type type, hone_model **out, hone_quantize_report *made,
                           hone_error *error);
/* The units as their rungs say; the input itself (retained) where all are f32. */
hone_status hn_mix_build(hn_mixing *m, hone_model **out, hone_error *error);

/* ---- units.c */

/* From the layers, and the plans of all sides that are there (by type). */
hone_status hn_mix_make_units(hn_mixing *m, const hn_mix_side *sides, hone_error *error);
/* The unit of a step of a plan; -1: none. */
int32_t hn_mix_unit_of(const hn_mixing *m, const hone_step_info *step);

/* ---- times.c */

hone_status hn_mix_time_units(hn_mixing *m, const hn_mix_side *sides, hone_error *error);
/* Milliseconds of each of two sides, in turn. */
hone_status hn_mix_turns(hn_mixing *m, const hn_mix_side *a, const hn_mix_side *b, uint32_t rounds,
                         double *ms_a, double *ms_b, hone_error *error);
/* *faster: the result is, beyond doubt. Fills the report's figures. */
hone_status hn_mix_race(hn_mixing *m, const hn_mix_side *result, bool *faster, hone_error *error);

/* ---- ladder.c: decided by the figures alone */

void hn_mix_climb(hn_mix_unit *unit, bool untimed);
/* 8 bits or f32, whatever it takes alone. */
void hn_mix_climb_together(hn_mix_unit *unit);

/* ---- together.c */

/* A wide layer between narrow ones costs conversions, and a step of several layers cannot be made: where the
 * whole is faster with all layers in 8 bits than with each by its own time, all may have them. */
hone_status hn_mix_try_together(hn_mixing *m, hone_error *error);

/* ---- score.c */

/* What a side loses against the wide one on a half, as the metric says. `wide` and `narrow` (may be NULL):
 * the metric of either. */
hone_status hn_mix_score(hn_mixing *m, const hn_mix_side *side, int half, hone_mixed_score *out,
                         hone_error *error);
/* Noise of the outputs on some samples that choose. */
hone_status hn_mix_noise(hn_mixing *m, const hn_mix_side *side, double *noise, hone_error *error);

/* ---- search.c */

/* *met: the units' rungs keep the budget on both halves, and something is narrow. */
hone_status hn_mix_search(hn_mixing *m, bool *met, hone_error *error);

#endif
