/* What rules are shown: profiles on which each must fire, beside ones on which it must keep quiet. */
#ifndef TESTS_RULES_ILLNESSES_H
#define TESTS_RULES_ILLNESSES_H

#include "rules/fixture.h"

typedef struct rule_case {
  const char *rule;
  void (*ill)(fixture *f);
  void (*nearly)(fixture *f); /* just short of ill */
} rule_case;

extern const rule_case illnesses[];
extern const size_t illness_count;

/* Those that tests plant by themselves, and what is no illness but changes what rules say. */
void ill_slow_convolutions(fixture *f);
void ill_memory(fixture *f);
void ill_gaps(fixture *f);
void ill_small_gaps(fixture *f);
void ill_unfused(fixture *f);
void ill_one_thread(fixture *f);
void ill_outlier(fixture *f);
void ill_odd_channels(fixture *f);
void ill_on_device(fixture *f);
void ill_pageable(fixture *f);
void ill_one_stream(fixture *f);
void ill_latency(fixture *f);
void ill_batch_1(fixture *f);
void ill_full_precision(fixture *f);
void ill_int8(fixture *f);
void ill_drift(fixture *f);
void ill_faster_kernels(fixture *f);
void ill_same_kernels(fixture *f);

#endif
