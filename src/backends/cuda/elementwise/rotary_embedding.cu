/* RotaryEmbedding: a thread a pair of a head's values, turned by the angle of its token, or a value that is not turned.
 *
 * p: threads of a head, its values, pairs, heads, tokens, whether heads lie within tokens, whether pairs are neighbours,
 * rows of the caches where positions pick them, else 0. A position outside of the caches is reported. */
#include "direct.cuh"

HN_EACH(rotary_embedding) {
  const u32 each = (u32)a->p[0], half = (u32)a->p[2], line = i / each, j = i - line * each;
  const u32 heads = (u32)a->p[3], tokens = (u32)a->p[4];
  const u32 token = a->p[5] ? line / heads : line / (heads * tokens) * tokens + line % tokens;
  const i64 at = (i64)line * a->p[1];
  if (j >= half) { /* not turned */
    HN_OUT(0, at + half + j, HN_IN(0, at + half + j));
    return;
  }
  i64 row = token;
#ifdef HN_PICKED
  row = HN_IN(3, token);
  if (row < 0 || row >= a->p[7]) {
    hn_refuse_direct(a);
    row = 0;
  }
#endif
  const i64 first = at + (a->p[6] ? 2 * j : j), second = first + (a->p[6] ? 1 : half);
  const HN_REAL x = HN_IN(0, first), y = HN_IN(0, second), c = HN_IN(1, row * half + j), s = HN_IN(2, row * half + j);
  HN_OUT(0, first, c * x - s * y);
  HN_OUT(0, second, s * x + c * y);
}
