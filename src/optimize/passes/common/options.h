/* What is asked of the passes. */
#ifndef HN_OPTIMIZE_PASSES_OPTIONS_H
#define HN_OPTIMIZE_PASSES_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hn_optimize_options {
  int level;          /* 0 none, 1 basic, 2 aggressive, 3 may change numerics beyond the dtype's bound */
  const char *passes; /* comma-separated globs of pass names, "-glob" switches off; NULL or "": all of the
                         level. A pass  that is named without globs runs whatever the level is */
  const char *const *others; /* names that the list may have, too, and that are nothing to the passes (NULL at
                                the end); NULL: none */
  bool verify_each;          /* after every pass that changed something: same answers on random inputs */
  bool defer;     /* scaled weights may stay unmade (ir/bytes.h): for a model that is lowered at once */
  bool lowered;   /* the model is lowered at once, never written: what makes lowering simpler is rewritten */
  bool processor; /* lowered for a processor, no accelerator: operators that have steps of their own there
                     stay */
  bool codes;     /* lowered for an accelerator whose products read weights that are codes of few bits */
  bool moves;  /* of constants only large ones are folded, by what moves their elements: the same whatever the
                  shapes and the arithmetic will be */
  bool coarse; /* lowered with weights of fewer than 11 bits (bf16, fp8): sums of large and small ones lose
                  what the small ones say */
  double codes_rate;   /* lowered for a processor: products of codes of 8 bits in the time of one of f32 */
  bool check_each;     /* check the graph's invariants after every pass (always on in debug builds) */
  double fold_seconds; /* budgets of constant folding; 0: 20 s, 1 GiB together, 256 MiB a tensor (1 GiB where
                          the model is lowered) */
  uint64_t fold_bytes;
  uint64_t fold_tensor_bytes;
  const _Atomic bool *cancel; /* NULL: none */
  uint64_t verify_seed;
} hn_optimize_options;

#endif
