/* Plans of one model whose inputs' sizes lie on a line: one form, numbers that grow evenly.
 *
 * A decoder's past is longer by one with every token, and text has any length. Plans for such sizes are
 * alike: the same steps, by the same tactics, and every number in them (numbers.h) is base + slope * t, where
 * t says how far along the line. Three plans that were made from nothing say so: where numbers of the third
 * are what the first two foretell, and steps of t between them have no common divisor, then
 *
 *  - a number that is no even function of t (a minimum, a quotient rounded down, a multiple of 8) would have
 *    differed: what bends to one side meets a straight line in two points at most, or is it; what repeats is
 *    the same only where all three are whole periods apart;
 *  - what passes, lowering and tactics decide by comparing numbers of the model with each other or with
 * limits was decided the same at both ends, so also between them, where numbers are even.
 *
 * That holds of numbers, not of what conditions and remainders make of them: a size may equal 100, or leave
 * nothing when divided by 4, at one place between the ends. So every constant that folding made of sizes
 * (hn_value.sized) is evaluated again where the line only foretells what it is, and so are those that passes
 * took away: a plan moves only if they are what was foretold. Where a pass may have looked at one that cannot
 * be foretold, it must show the same pattern (content.c).
 *
 * No dimension that moves may be smaller than 2: one of 1 or 0 means something else to many operators. A plan
 * can be moved between the ends of its line, to exactly the numbers that one made from nothing would have.
 * Its tactics are asked again whether they take their steps, tables that they keep of shapes are made again,
 * and memory is placed for the line's far end. All plans of a line have the tactics of the first. Constants
 * that were folded from sizes are evaluated again by the nodes that made them, or are a part of those at the
 * far end. */
#ifndef HN_OPTIMIZE_PLAN_LINE_H
#define HN_OPTIMIZE_PLAN_LINE_H

#include "optimize/step/step.h"

/* What a plan's numbers and constants were when it was made. */
typedef struct hn_sample hn_sample;
typedef struct hn_line hn_line;

/* more [n_more]: descriptors beside the plan that follow it. NULL: it cannot be moved, or memory is short. */
hn_sample *hn_sample_take(hn_plan *plan, hone_tensor_desc *const *more, uint32_t n_more);
void hn_sample_free(hn_sample *sample);
bool hn_sample_alike(const hn_sample *a, const hn_sample *b); /* of one form */
bool hn_sample_same(const hn_sample *a, const hn_sample *b);

/* Three samples at at[0] < at[1] < at[2]; NULL: they are on no line, which why says, or memory is short. */
hn_line *hn_line_make(const hn_sample *const sample[3], const int64_t at[3], hone_reason *why);
void hn_line_free(hn_line *line);
int64_t hn_line_low(const hn_line *line);
int64_t hn_line_high(const hn_line *line);
/* The sample is on the line, which goes as far as there now. */
bool hn_line_extend(hn_line *line, const hn_sample *sample, int64_t at);

/* Makes ready that the plan, made from nothing at `at` of the line, can be moved. False: it is not on the
 * line, or a step cannot be changed; the plan is as it was. */
bool hn_plan_attach(hn_plan *plan, hone_tensor_desc *const *more, uint32_t n_more, const hn_line *line,
                    int64_t at);
/* Moves a plan that was attached to this line; nobody uses it meanwhile. *moved false: a tactic refuses, and
 * the plan is as it was. An error leaves a plan that can only be destroyed. */
hone_status hn_plan_move(hn_plan *plan, const hn_line *line, int64_t at, bool *moved, hone_error *error);
/* How many times as long its steps are predicted to take as they would with the tactics that would be chosen.
 */
double hn_plan_excess(const hn_plan *plan);
void hn_moving_free(hn_moving *moving);

#endif
