/* The inputs of steps on codes of 8 bits, in the order of ONNX' QLinearConv. QLinearConvAdd and
 * QLinearMatMulAdd have the sum behind them: its second operand, which lies as the output does, and the scale
 * and zero point of the sum; QLinearConvTable and QLinearMatMulTable what becomes of each of the 256 codes. A
 * sum may have both: then the table, and the scale and zero point of what it makes, stand at the end. */
#ifndef HN_OPTIMIZE_STEP_QLINEAR_H
#define HN_OPTIMIZE_STEP_QLINEAR_H

/* LayerNormalization of codes or of floats, to codes or to floats: left out, x scale or y scale, where there
 * are floats. */
enum {
  HN_QNORM_X,
  HN_QNORM_X_SCALE,
  HN_QNORM_X_ZERO,
  HN_QNORM_SCALE,
  HN_QNORM_SHIFT,
  HN_QNORM_Y_SCALE,
  HN_QNORM_Y_ZERO,
  HN_QNORM_INPUTS
};

enum {
  HN_QLINEAR_X,
  HN_QLINEAR_X_SCALE,
  HN_QLINEAR_X_ZERO,
  HN_QLINEAR_W,
  HN_QLINEAR_W_SCALE,
  HN_QLINEAR_W_ZERO,
  HN_QLINEAR_Y_SCALE,
  HN_QLINEAR_Y_ZERO,
  HN_QLINEAR_BIAS,
  HN_QLINEAR_INPUTS,
  HN_QLINEAR_TABLE = HN_QLINEAR_INPUTS,
  HN_QLINEAR_ADDED = HN_QLINEAR_INPUTS,
  HN_QLINEAR_ADDED_SCALE,
  HN_QLINEAR_ADDED_ZERO,
  HN_QLINEAR_SUM_SCALE,
  HN_QLINEAR_SUM_ZERO,
  HN_QLINEAR_ADD_INPUTS,
  HN_QLINEAR_SUM_TABLE = HN_QLINEAR_ADD_INPUTS,
  HN_QLINEAR_SUM_TABLE_SCALE,
  HN_QLINEAR_SUM_TABLE_ZERO,
  HN_QLINEAR_TABLE_ADD_INPUTS
};

/* A bias of floats is rounded to units of the sum where so many of them or more make a level of the result:
 * that moves nothing that matters. */
enum { HN_QLINEAR_UNITS_OF_LEVEL = 64 };

#endif
