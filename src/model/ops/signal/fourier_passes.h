/* The passes of fourier.c over numbers of type REAL, under the name RUN. Included once for each type. */

/* A pass takes vectors of [blocks][p][length] and gives [p][blocks][length]: `blocks` is the product of the
 * factors before, and what leaves it is in order at the end (Stockham). */
#define POINT(x, q) ((x) + 2 * (q))

/* out = in times the i-th turn. */
static inline void HN_PASTE(RUN, _turn)(const hn_fourier *f, int64_t i, REAL re, REAL im, REAL *out) {
  REAL c = (REAL)f->cosine[i], s = (REAL)f->sine[i];
  out[0] = re * c - im * s;
  out[1] = re * s + im * c;
}

/* The transform of p points that lie `length` apart, p odd: point q and p - q share their sums. */
static hone_status HN_PASTE(RUN, _odd)(hone_call *call, const hn_fourier *f, int64_t p, const REAL *x,
                                       int64_t length, REAL *folded, REAL *y, int64_t step,
                                       hone_error *error) {
  const int64_t half = (p - 1) / 2, turn = f->n / p;
  REAL re = x[0], im = x[1];
  for (int64_t j = 1; j <= half; j++) {
    const REAL *a = POINT(x, j * length), *b = POINT(x, (p - j) * length);
    REAL *t = folded + 4 * (j - 1);
    t[0] = a[0] + b[0], t[1] = a[1] + b[1], t[2] = a[0] - b[0], t[3] = a[1] - b[1];
    re += t[0], im += t[1];
  }
  y[0] = re, y[1] = im;
  for (int64_t q = 1; q <= half; q++) {
    REAL ar = x[0], ai = x[1], br = 0, bi = 0;
    if (q % 64 == 0) {
      hone_status status = hn_call_check(call, error);
      if (status) return status;
    }
    for (int64_t j = 1, w = q; j <= half; j++) {
      const REAL *t = folded + 4 * (j - 1), c = (REAL)f->cosine[w * turn], s = (REAL)f->sine[w * turn];
      ar += c * t[0], ai += c * t[1];
      br -= s * t[3], bi += s * t[2];
      w += q;
      if (w >= p) w -= p;
    }
    REAL *a = POINT(y, q * step), *b = POINT(y, (p - q) * step);
    a[0] = ar + br, a[1] = ai + bi;
    b[0] = ar - br, b[1] = ai - bi;
  }
  return HONE_OK;
}

static inline void HN_PASTE(RUN, _four)(const hn_fourier *f, const REAL *x, int64_t length, REAL *y,
                                        int64_t step) {
  const REAL *b = POINT(x, length), *c = POINT(x, 2 * length), *d = POINT(x, 3 * length);
  REAL sr = x[0] + c[0], si = x[1] + c[1], dr = x[0] - c[0], di = x[1] - c[1];
  REAL tr = b[0] + d[0], ti = b[1] + d[1], ur = d[1] - b[1], ui = b[0] - d[0];
  if (!f->inverse) ur = -ur, ui = -ui;
  REAL *q = POINT(y, step), *r = POINT(y, 2 * step), *s = POINT(y, 3 * step);
  y[0] = sr + tr, y[1] = si + ti;
  q[0] = dr + ur, q[1] = di + ui;
  r[0] = sr - tr, r[1] = si - ti;
  s[0] = dr - ur, s[1] = di - ui;
}

static hone_status RUN(hone_call *call, const hn_fourier *f, double *re, double *im, hone_error *error) {
  const int64_t n = f->n;
  REAL *x = (REAL *)f->spare, *y = x + 2 * n, *folded = y + 2 * n;
  for (int64_t i = 0; i < n; i++) x[2 * i] = (REAL)re[i], x[2 * i + 1] = (REAL)im[i];
  for (int64_t pass = 0, blocks = 1; pass < f->factors; pass++) {
    const int64_t p = f->factor[pass], length = n / (blocks * p), step = blocks * length;
    hone_status status = hn_call_check(call, error);
    for (int64_t k = 0; !status && k < blocks; k++)
      for (int64_t i = 0; !status && i < length; i++) {
        const REAL *from = POINT(x, k * p * length + i);
        REAL *to = POINT(y, k * length + i);
        if (p == 2) {
          const REAL *b = POINT(from, length);
          REAL *q = POINT(to, step);
          to[0] = from[0] + b[0], to[1] = from[1] + b[1];
          q[0] = from[0] - b[0], q[1] = from[1] - b[1];
        } else if (p == 4)
          HN_PASTE(RUN, _four)(f, from, length, to, step);
        else
          status = HN_PASTE(RUN, _odd)(call, f, p, from, length, folded, to, step, error);
        for (int64_t j = 1; i && j < p; j++) {
          REAL *t = POINT(to, j * step);
          HN_PASTE(RUN, _turn)(f, j * blocks * i, t[0], t[1], t);
        }
      }
    if (status) return status;
    REAL *swap = x;
    x = y, y = swap;
    blocks *= p;
  }
  const REAL scale = f->inverse ? 1 / (REAL)n : 1;
  for (int64_t i = 0; i < n; i++) re[i] = x[2 * i] * scale, im[i] = x[2 * i + 1] * scale;
  return HONE_OK;
}

#undef POINT
