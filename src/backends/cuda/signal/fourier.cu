/* DFT and STFT by their definition, a thread an output point, with a table of cosines and sines in the blob. */
#include "direct.cuh"

/* in: elements from point to point */
HN_FN void hn_add_point(const double *table, u32 turn, u32 n, double re, double im, double *sum_re, double *sum_im) {
  const double c = table[turn], s = table[n + turn];
  *sum_re += re * c - im * s;
  *sum_im += re * s + im * c;
}

#ifdef HN_FRAMES
/* p: points of a frame, bins, frames, frame step, signal length, parts of a point */
HN_EACH(hn_stft) {
  const double *table = (const double *)a->blob;
  const u32 n = (u32)a->p[0], bins = (u32)a->p[1], frames = (u32)a->p[2];
  const u32 line = i / bins, k = i - line * bins, batch = line / frames;
  const i64 from = (i64)batch * a->p[4] + (i64)(line - batch * frames) * a->p[3];
  double re = 0, im = 0;
  u32 turn = 0;
  for (u32 t = 0; t < n; t++) {
    double w = 1;
#ifdef HN_I2
    w = HN_IN(2, t);
#endif
    const i64 at = (from + t) * a->p[5];
    hn_add_point(table, turn, n, w * HN_IN(0, at), a->p[5] == 2 ? w * HN_IN(0, at + 1) : 0, &re, &im);
    turn = turn + k < n ? turn + k : turn + k - n;
  }
  HN_OUT(0, 2 * (i64)i, re);
  HN_OUT(0, 2 * (i64)i + 1, im);
}
#else
/* p: points, points given out, points that the input has, inner lines, parts of an input point, parts of an output
 * point: with one the input is the half of a spectrum that determines a real signal. f[0]: factor */
HN_EACH(hn_dft) {
  const double *table = (const double *)a->blob;
  const u32 n = (u32)a->p[0], inner = (u32)a->p[3], line = i / inner, outer = line / (u32)a->p[1];
  const u32 k = line - outer * (u32)a->p[1], column = i - line * inner;
  const i64 have = a->p[2], parts = a->p[4];
  double re = 0, im = 0;
  u32 turn = 0;
  for (u32 t = 0; t < n; t++) {
    const int mirrored = a->p[5] == 1 && t > n / 2;
    const i64 point = mirrored ? n - t : t;
    if (point < have) {
      const i64 at = ((outer * have + point) * inner + column) * parts;
      const double part = parts == 2 ? (double)HN_IN(0, at + 1) : 0;
      hn_add_point(table, turn, n, HN_IN(0, at), mirrored ? -part : part, &re, &im);
    }
    turn = turn + k < n ? turn + k : turn + k - n;
  }
  HN_OUT(0, a->p[5] * (i64)i, re * a->f[0]);
  if (a->p[5] == 2) HN_OUT(0, 2 * (i64)i + 1, im * a->f[0]);
}
#endif
