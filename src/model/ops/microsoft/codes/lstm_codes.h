/* The operands of DynamicQuantizeLSTM, and its weights as numbers. */
#ifndef HN_MODEL_OPS_MICROSOFT_LSTM_CODES_H
#define HN_MODEL_OPS_MICROSOFT_LSTM_CODES_H

#include "model/ops/microsoft/common/inner.h"

enum {
  HN_DQ_LSTM_W = 1,
  HN_DQ_LSTM_R = 2,
  HN_DQ_LSTM_PLAIN = 8,
  HN_DQ_LSTM_W_SCALE = 8,
  HN_DQ_LSTM_R_SCALE = 10
};

/* [directions, columns, gates] as LSTM has it: [directions, gates, columns] of f32. scale NULL: 1. */
hone_tensor_desc hn_lstm_codes_desc(const hone_tensor_desc *codes);
void hn_lstm_decode(const hone_tensor *codes, const hone_tensor *scale, const hone_tensor *zero, float *out);

#endif
