/* What scattered updates do to what is there: ScatterElements and ScatterND. */
#ifndef HN_CPU_MOVEMENT_SCATTER_H
#define HN_CPU_MOVEMENT_SCATTER_H

#include <hone/plugin.h>

enum { HN_SCATTER_RUN = 256 }; /* updates that are placed together */

/* y[place[i] * step + i * along] = u[i], or that combined with what is there, for n updates one after the
 * other: where places meet the last one wins. All count in elements. */
typedef void (*hn_scatter_fn)(void *y, const uint32_t *place, int64_t step, int64_t along, const void *u,
                              int64_t n);

/* y[at[k] + i] = that combined with u[k * step + i], for n neighbours i of each of `lines` k, one line after
 * the other. */
typedef void (*hn_scatter_lines_fn)(void *y, const int64_t *at, int64_t lines, const void *u, int64_t step,
                                    int64_t n);

typedef struct hn_scatter {
  hn_scatter_fn put;
  hn_scatter_lines_fn lines; /* NULL: put does lines, too */
  bool replaces;             /* updates are moved as bits */
  int32_t element;           /* bytes */
} hn_scatter;

/* What a step does: data and updates row-major and of one type, an output like the data. */
bool hn_scatter_describe(const hone_step *s, hn_scatter *sc, hone_reason *why);

/* Seconds of the copy of the data and of n updates by indices of `index_bytes` each. */
double hn_scatter_seconds(const hone_step *s, const hone_machine *m, double index_bytes);

/* The data becomes the output, on all threads. */
void hn_scatter_copy(const hone_step_run *r);

#endif
