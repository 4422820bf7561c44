/* RNN, GRU and LSTM as tactics: what the step says, the blob, and the run around the driver. */
#ifndef HN_CPU_RECURRENT_RECURRENT_STEP_H
#define HN_CPU_RECURRENT_RECURRENT_STEP_H

#include "backends/cpu/recurrent/recurrent_driver.h"
#include "backends/tactic.h"

typedef struct hn_recurrent_config {
  const hn_rnn_kind *kind;
  bool coded; /* W and R are codes of 8 bits with scales and zero points, what meets them is rounded to 8 bits
               */
} hn_recurrent_config;

HN_FAMILY_PACKED(hn_recurrent);

#define hn_cpu_recurrent_tactic(NAME, ANCHOR, ...)                                                           \
  HN_TACTIC_PACKED(cpu, NAME, ANCHOR, 5, hn_recurrent, __VA_ARGS__)

#endif
