/* Ensembles of decision trees over rows of f32 features. */
#ifndef HN_CPU_CLASSICAL_TREES_STEP_H
#define HN_CPU_CLASSICAL_TREES_STEP_H

#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "model/ops/classical/trees.h"

/* How the operator's attributes are read. */
typedef struct hn_trees_step_config {
  hn_tree_form_fn form;
} hn_trees_step_config;

HN_FAMILY_PACKED(hn_trees_step);

#define hn_cpu_trees_tactic(NAME, ANCHOR, ...)                                                               \
  HN_TACTIC_PACKED(cpu, NAME, ANCHOR, 1, hn_trees_step, __VA_ARGS__)

#endif
