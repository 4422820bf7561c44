/* TfIdfVectorizer of numbers: a thread a row and n-gram. The output begins as zeros, and no two n-grams share a column.
 * p: n-grams, tokens of a row, columns, most skips, least length, greatest length, whether presence alone counts */
#include "direct.cuh"
#include "tf_idf_args.h"

HN_EACH(hn_tf_idf) {
  const u32 grams = (u32)a->p[0], row = i / grams;
  const hn_gram g = ((const hn_gram *)a->blob)[i - row * grams];
  const i64 *pool = (const i64 *)((const hn_gram *)a->blob + grams) + g.at;
  const i64 length = a->p[1], begin = row * length;
  float sum = 0;
  if (g.length < a->p[4] || g.length > a->p[5]) return;
  /* A single token has no gaps to leave out. */
  for (i64 step = 1; step <= (g.length == 1 ? 1 : a->p[3] + 1) && (g.length - 1) * step < length; step++)
    for (i64 start = 0; start + (g.length - 1) * step < length; start++) {
      int k = 0;
      while (k < g.length && pool[k] == (i64)HN_IN(0, begin + start + k * step)) k++;
      if (k == g.length) sum = a->p[6] ? g.weight : sum + g.weight;
    }
  if (sum != 0) HN_OUT(0, row * a->p[2] + g.output, sum);
}
