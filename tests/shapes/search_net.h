/* A decoder of tables, in which the words, their positions, the mask and what is kept of the past have a say.
 */
#ifndef HN_TESTS_SHAPES_SEARCH_NET_H
#define HN_TESTS_SHAPES_SEARCH_NET_H

#include "net.h"

#include <hone/hone.h>

/* clang-format off */
#define BY_WORD "f32[9x9]{-0.75, -2, 0.25, -0.75, 2, 0.25, -0.75, 1.5, -0.75, -1, -1.25, -0.5, 0.5, 0.5, -0.5, " \
  "-1.75, 1.25, -0.25, 2, 0, 1.25, -0.75, 0.75, -1.25, -0.25, -1.25, -1.5, -1.25, 1.25, 0, -0.5, " \
  "1.25, -0.75, -0.75, -1.75, -1.25, -1.5, -1.25, 0.25, -1.75, -1.25, 2, 1.5, 2, -1.25, 0.25, 1.75, " \
  "-0.5, 1.5, -0.25, 0.5, 0.25, 1, 1, 1.25, -2, -0.75, 0.25, -1.5, 0, -0.75, 1.75, 1, -0.5, -1.5, " \
  "-0.25, -0.25, -1, 0.25, 1.5, 0.75, 1, 1, 1.75, 1.75, -0.5, -1.5, 1, -0.5, 1.75, 2}"
#define BY_PLACE "f32[16x9]{3, -3, 1, -1.5, -2.75, -1.75, 1.25, -0.5, -2.75, -0.75, 0, -1.5, 2, -0.25, -1.75, 1.5, " \
  "-1.5, 0.75, 0.5, 2.25, 1, 1.75, -1.75, 1.5, 0, -1, -0.25, -1.5, 1.5, -2.25, -2.5, 1.5, -0.25, " \
  "-1, 2, 0, 1.75, -3, 1.75, -0.75, -0.25, 0, 0, -2.25, -0.25, -1.5, 2.5, -1, -1.5, 1, 1.25, 0.25, " \
  "1.5, 0, -3, 3, 2.5, -1, 2.5, 3, -2.5, 1, 2.25, -1.75, -1, 0, 1.75, 1, 0.5, -1.5, 2, -2.25, 0.5, " \
  "0, 0, -1.75, 0, -0.25, -1, -0.25, 0.25, 3, -1.75, 3, 1.5, 2.5, 1.25, 1, 1.25, 1, -2, 3, 1.75, " \
  "-1.5, -2.75, 2.25, 2.25, 1.75, -2.75, -3, -1.75, 0.25, 2, 0, 1, -2, -1.25, 3, -2.25, -2.5, " \
  "-1.25, 2.25, 1.75, 3, 2.5, 0.5, -2, -1.75, -0.5, -0.5, -1.75, -1, 1.25, -2.75, -1, -2.25, -3, " \
  "0.75, -2.25, 1.5, -0.5, 0.25, -1.25, 0.5, 0.25, 1, -2.75, -1, 1, 0.5, -2.75, 0.5, -2.75, 2.5}"
#define BY_MASK "f32[9]{-0.25, -0.75, 0.25, 0.25, 0.5, 0.75, -0.25, -0.75, 0.25}"
#define BY_PAST "f32[9]{-0.125, 0, -0.0625, 0.0625, 0, 0, 0, 0, 0.0625}"
/* clang-format on */
#define TAKES "%input_ids: i32[?x?], %position_ids: i32[?x?], %attention_mask: i32[?x?], "
#define DECODER                                                                                              \
  "graph dec(" TAKES "%past: f32[2x?x1x?x1]) -> (%logits, %present) {\n"                                     \
  "  %a = Gather(" BY_WORD ", %input_ids)\n  %b = Gather(" BY_PLACE ", %position_ids)\n"                     \
  "  %m = Cast(%attention_mask) {to=1}\n  %s = ReduceSum(%m, i64[1]{1})\n  %su = Unsqueeze(%s, i64[1]{2})\n" \
  "  %sv = Mul(%su, " BY_MASK ")\n  %t = Cast(%input_ids) {to=1}\n  %new = Unsqueeze(%t, i64[3]{0, 2, 4})\n" \
  "  %both = Concat(%new, %new) {axis=0}\n  %present = Concat(%past, %both) {axis=3}\n"                      \
  "  %p = ReduceSum(%present, i64[4]{0, 2, 3, 4}) {keepdims=0}\n  %pu = Unsqueeze(%p, i64[2]{1, 2})\n"       \
  "  %pv = Mul(%pu, " BY_PAST                                                                                \
  ")\n  %ab = Add(%a, %b)\n  %abs = Add(%ab, %sv)\n  %logits = Add(%abs, %pv)\n}"
#define DOMAIN "ir 8\nopset 17\nopset \"com.microsoft\" 1\n"

enum { TEXTS = 3, PROMPT = 3, MOST = 16 };

static int32_t prompt[TEXTS * PROMPT] = {1, 2, 3, 4, 5, 6, 0, 0, 7};

static inline hone_tensor prompts(void) {
  return (hone_tensor){hone_desc(HONE_DTYPE_I32, 2, (const int64_t[]){TEXTS, PROMPT}), prompt};
}

#endif
