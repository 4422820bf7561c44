/* What a scorer keeps. Inside of improve/accuracy only. */
#ifndef HN_IMPROVE_ACCURACY_SCORER_H
#define HN_IMPROVE_ACCURACY_SCORER_H

#include "base/error.h"
#include "base/vec.h"

#include <hone/eval.h>

/* A sample's class and what it was taken for. */
typedef struct hn_decision {
  uint32_t truth, chosen;
} hn_decision;

struct hone_scorer {
  hone_truth truth;
  uint32_t n_classes;
  uint64_t n_samples;
  HN_VEC(hn_decision) decisions;
  uint64_t right, right5;
  bool choices;      /* somebody gave a class without scores */
  uint8_t *outcomes; /* [n_samples] */
};

/* out->classes are there, and their samples, predicted and right counted: shares of each, and F1 of all. */
void hn_scorer_shares(hone_eval_result *out);
/* classes.c */
hone_status hn_scorer_finish_classes(const hone_scorer *scorer, hone_eval_result *out, hone_error *error);

#endif
