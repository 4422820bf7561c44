/* LSTM: X W^T of all steps as one product, each step's h R^T, gates and states as one kernel. */
#include "backends/cpu/common/recurrent_step.h"

HN_RECURRENT_TACTIC(lstm, "LSTM", &hn_rnn_kind_lstm);
