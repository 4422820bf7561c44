/* What the files that lower quantised models share (qdq.c, code_tables.c, codes_pointwise.c). */
#ifndef HN_OPTIMIZE_LOWER_CODES_H
#define HN_OPTIMIZE_LOWER_CODES_H

#include "optimize/lower/lowering.h"

/* A constant of the file, not computed and not an input. */
bool hn_fixed(const hn_value *v);
/* The DequantizeLinear behind a value, with constant f32 scale and constant zero point. */
const hone_node *hn_dequantised(const hn_value *v);
/* The zero point of a QuantizeLinear or DequantizeLinear, or NULL. */
hn_value *hn_quantise_zero(const hone_node *n);
/* What a DequantizeLinear makes of constant codes. */
bool hn_of_fixed_codes(const hn_value *v);
/* The only node that reads v, in the same graph; NULL when there are others. */
const hone_node *hn_only_reader(const hn_value *v);

/* One scale for all of the product's weights, made by DequantizeLinear w, or one an output channel. */
bool hn_codes_scales_fit(const hone_node *product, const hone_node *w);

/* A constant of the plan in the place of value v, which nobody makes any more: both names lead to one slot.
 * NULL: memory is short. Takes made->data. */
hn_value *hn_plan_constant(hn_lowering *l, const hn_value *v, hone_tensor *made);

/* The value that a DequantizeLinear of a constant makes, as a constant of the plan: the graph keeps its
 * codes. Has the id of v, so that both names lead to one slot. */
hone_status hn_codes_compute(hn_lowering *l, const hn_value *v, hn_value **out, hone_error *error);

/* codes_bias.c: whether a bias has its numbers along the product's last dimension, or filters: a Gemm's may
 * be one a row, or one for each number of the result */
bool hn_codes_bias_by_column(const hone_node *product, const hn_value *bias);
/* Whether DequantizeLinear b has i32 codes in units of the scales of x times those of w */
bool hn_codes_bias_fits(const hone_node *b, const hone_node *x, const hone_node *w);
/* A bias in f32 as such codes, between x, w and QuantizeLinear y. False: rounding it would count. out may be
 * NULL; out->data NULL: memory is short. */
bool hn_codes_round_bias(const hn_value *bias, int64_t channels, const hone_node *x, const hone_node *w,
                         const hone_node *y, hone_tensor *out);

/* The anchor of unit u with a sum or a table of its codes behind it; NULL where there is none. */
typedef enum hn_joined { HN_JOINED_SUM = 1, HN_JOINED_TABLE } hn_joined;
const char *hn_codes_joined(const hn_unit *u, hn_joined with);

/* code_tables.c: functions of one tensor between DequantizeLinear and QuantizeLinear become tables of codes
 * (CodeTable, QLinearConvTable, QLinearMatMulTable). integer: by value, made by the float operator inside of
 * an integer unit. */
hone_status hn_lower_tables(hn_lowering *l, bool *integer, bool *any, hone_error *error);

/* codes_pointwise.c: functions between DequantizeLinear and QuantizeLinear become one program each, where a
 * tactic takes it. integer: by value id, set for what is made and read inside; *any: there was one. */
hone_status hn_lower_codes_pointwise(hn_lowering *l, bool *integer, bool *any, hone_error *error);
/* codes_sums.c: products of codes that nobody quantises become f32 at once, where a tactic takes that.
 * integer: by value id, set for what they make; *any: there was one. */
hone_status hn_lower_codes_sums(hn_lowering *l, bool *integer, bool *any, hone_error *error);
/* codes_norms.c: LayerNormalization that reads what is dequantised, or whose result is quantised, does that
 * itself, where a tactic takes it. integer: by value id, set for what reads codes; *any: there was one. */
hone_status hn_lower_codes_norms(hn_lowering *l, bool *integer, bool *any, hone_error *error);
/* The DequantizeLinear that makes v of codes of 8 bits that the run computes, by one constant scale and zero
 * point; or NULL. */
const hone_node *hn_of_codes(const hn_value *v);
/* The same, constant codes included. */
const hone_node *hn_of_any_codes(const hn_value *v);
/* Whether n is a QuantizeLinear to codes of 8 bits by one constant scale and zero point. */
bool hn_to_codes(const hone_node *n);
/* Scale and zero point of such a DequantizeLinear, or of a QuantizeLinear. */
void hn_codes_of(const hone_node *node, hone_dtype codes, float *scale, float *zero);

#endif
