/* See shapes.h. */
#include "cli/op/shapes.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* One shape an input, the last also for all that follow. A letter is a size, the same wherever it stands. */
static const char *const schemes[] = {
    "A",
    "A B",
    "A B C",
    "A B C D",
    "",
    "A B C D E",
    "A B;B",
    "A B C;C",
    "A B C D;D",
    "A B C;B",
    "A B C D;B",
    "A B C D;B 1 1",
    "A B C D;1 B 1 1",
    "A;",
    "A B;",
    "A B C D;",
    "A B;A 1",
    "A B C;A 1 C",
    "A 1 C;1 B C",
    "A B;B C",
    "A B;B C;C",
    "A B C;A C D",
    "A B C D;A B D E",
    "A B C D;A B E D;A B E D",
    "A B C D;E B 3 3;E",
    "A B C D;E B 1 1;E",
    "A B C D;B 1 3 3;B",
    "A B C;E B 3;E",
    "A B 4;A C B;",
    "A B 4;A B C;",
};

uint32_t op_schemes(void) { return sizeof schemes / sizeof *schemes; }

static int64_t size_draw(op_random *r, bool vector) {
  static const int64_t prime[] = {2, 3, 5, 7, 11, 13, 17, 23, 31, 37, 61, 97, 127},
                       edge[] = {4, 8, 15, 16, 24, 32, 33, 48, 63, 64, 65, 96},
                       large[] = {255, 257, 509, 1000, 1024, 2049},
                       vast[] = {4093, 8192, 16385, 65537, 100000, 1 << 18};
#define ONE_OF(list) list[op_below(r, sizeof(list) / sizeof *(list))]
  const uint32_t kind = op_below(r, 100);
  if (kind < 4) return 0;
  if (kind < 20) return 1;
  if (kind < 45) return ONE_OF(prime);
  if (kind < 65) return 3 + 2 * (int64_t)op_below(r, 12);
  if (kind < 90) return ONE_OF(edge);
  return vector && kind > 94 ? ONE_OF(vast) : ONE_OF(large);
#undef ONE_OF
}

static const char *shape_of(const char *text, const int64_t *size, op_shape *out) {
  out->rank = 0;
  for (; *text && *text != ';'; text++) {
    if (*text == ' ' || out->rank == HONE_MAX_RANK) continue;
    out->dim[out->rank++] = isdigit((unsigned char)*text) ? *text - '0' : size[*text - 'A'];
  }
  return text;
}

static void shapes_of(const char *text, const int64_t *size, uint32_t n, op_shape *out) {
  for (uint32_t i = 0; i < n; i++) {
    const char *end = shape_of(text, size, &out[i]);
    if (*end) text = end + 1;
  }
}

void op_shapes_draw(op_random *r, uint32_t scheme, uint32_t n, op_shape *out) {
  const char *text = schemes[scheme % op_schemes()];
  int64_t size[26];
  const bool vector = strchr(text, 'B') == NULL;
  for (int i = 0; i < 26; i++) size[i] = size_draw(r, vector);
  shapes_of(text, size, n, out);
}

/* Dimensions of the first shape. */
static int rank_of(const char *text) {
  int n = 0;
  for (; *text && *text != ';'; text++) n += *text != ' ';
  return n;
}

void op_shapes_typical(uint32_t scheme, uint32_t n, bool large, op_shape *out) {
  static const int64_t image[2][5] = {{1, 64, 56, 56, 64}, {8, 64, 112, 112, 64}},
                       rows[2][5] = {{1, 128, 768, 768, 768}, {16, 512, 768, 768, 768}},
                       matrix[2][5] = {{128, 768, 768, 768, 768}, {4096, 2048, 768, 768, 768}},
                       vector[2][5] = {{1 << 16}, {1 << 23}};
  const char *text = schemes[scheme % op_schemes()];
  const int rank = rank_of(text);
  shapes_of(text,
            rank > 3    ? image[large]
            : rank == 3 ? rows[large]
            : rank == 2 ? matrix[large]
                        : vector[large],
            n, out);
}

uint32_t op_scheme_usual(uint32_t i) {
  static const int order[] = {4, 3, 2, 1, 5, 0};
  for (size_t k = 0; k < sizeof order / sizeof *order; k++)
    for (uint32_t s = 0; s < op_schemes(); s++)
      if (rank_of(schemes[s]) == order[k] && i-- == 0) return s;
  return 0;
}

void op_shapes_vary(op_random *r, const op_shape *given, uint32_t n, op_shape *out) {
  int64_t was[OP_MOST * HONE_MAX_RANK], now[OP_MOST * HONE_MAX_RANK];
  size_t known = 0;
  const uint32_t changes = op_below(r, 4); /* of four dimensions; 0: all stay */
  memcpy(out, given, n * sizeof *out);
  for (uint32_t i = 0; i < n; i++)
    for (int32_t k = 0; k < out[i].rank; k++) {
      size_t j = 0;
      while (j < known && was[j] != out[i].dim[k]) j++;
      if (j == known) {
        was[known] = out[i].dim[k];
        now[known++] = op_below(r, 4) < changes ? size_draw(r, false) : out[i].dim[k];
      }
      out[i].dim[k] = now[j];
    }
}
