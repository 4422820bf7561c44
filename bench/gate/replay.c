/* gate_replay [-n CASES] [-s SEED] FILE...: how often the gate is wrong.
 *
 * Each case takes a window of recorded noise (bench/gate/record.sh: medians of equal processes, in the order
 * in which they ran), scales it to a CV of 3 %, deals it out to old and new in the gate's order (ABBA), and
 * asks the code that decides in `hone gate`. In half of the cases nothing has changed (A/A), in the others
 * every time of the new one is 5 % longer. Bursts, drift, outliers and the likeness of neighbours stay as
 * they were recorded. Noise by formula is shown for comparison and does not count.
 *
 * Ends with "false alarms X %, +5 % caught Y %" of the recorded noise; exit 1 unless X <= 1 and Y >= 95. */
#include <hone/hone.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 60, WINDOW = 2 * PAIRS, MOST = 100000 };
#define CV 0.03
#define SLOWDOWN 0.05

static uint64_t state;
static double uniform(void) { /* splitmix64 */
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}
static double normal(void) { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()); }

/* ---- noise: fills a window with times around 1 */

typedef struct recording {
  double *v;
  size_t n;
} recording;

typedef void (*noise)(const recording *from, double *w);

static void recorded(const recording *from, double *w) {
  size_t at = (size_t)(uniform() * (double)(from->n - WINDOW + 1));
  memcpy(w, from->v + at, WINDOW * sizeof *w);
}
static void white(const recording *from, double *w) {
  (void)from;
  for (int i = 0; i < WINDOW; i++) w[i] = 1 + CV * normal();
}
/* Neighbours are alike: first-order autoregression with 0.8. */
static void alike(const recording *from, double *w) {
  (void)from;
  double x = normal();
  for (int i = 0; i < WINDOW; i++, x = 0.8 * x + 0.6 * normal()) w[i] = 1 + CV * x;
}
/* Neighbours are unlike, the worst that pairs can meet: fast after slow, slow after fast. */
static void unlike(const recording *from, double *w) {
  (void)from;
  double x = normal();
  for (int i = 0; i < WINDOW; i++, x = -0.5 * x + sqrt(0.75) * normal()) w[i] = 1 + CV * x;
}
/* The machine becomes slower all the time: two thirds of the variance is a straight line. */
static void drifting(const recording *from, double *w) {
  (void)from;
  for (int i = 0; i < WINDOW; i++) w[i] = 1 + CV * (2.4 * ((double)i / WINDOW - 0.5) + 0.6 * normal());
}
/* One process in eight meets something that makes it much slower. */
static void outliers(const recording *from, double *w) {
  (void)from;
  for (int i = 0; i < WINDOW; i++) w[i] = 1 + 0.005 * normal() + (uniform() < 0.125 ? 0.2 * uniform() : 0);
}
/* A neighbour comes and goes: stretches of some ten processes are 8 % slower. */
static void bursts(const recording *from, double *w) {
  (void)from;
  int busy = 0;
  for (int i = 0; i < WINDOW; i++) {
    if (uniform() < 0.1) busy = !busy;
    w[i] = 1 + 0.01 * normal() + 0.08 * busy;
  }
}

static void scale(double *w) {
  double sum = 0, squares = 0;
  for (int i = 0; i < WINDOW; i++) sum += w[i];
  double mean = sum / WINDOW;
  for (int i = 0; i < WINDOW; i++) squares += (w[i] / mean - 1) * (w[i] / mean - 1);
  double cv = sqrt(squares / (WINDOW - 1));
  for (int i = 0; i < WINDOW; i++) w[i] = fmax(0.05, 1 + (w[i] / mean - 1) * (cv > 0 ? CV / cv : 0));
}

/* ---- cases */

typedef struct tally {
  unsigned worse, none, cases;
  double pairs;
} tally;

static void run_case(const double *w, double slowdown, tally *t) {
  double old[PAIRS], new[PAIRS];
  hone_gate_result r;
  hone_error e = {0};
  for (int i = 0; i < PAIRS; i++) {
    old[i] = w[2 * i + i % 2];
    new[i] = w[2 * i + 1 - i % 2] * (1 + slowdown);
  }
  if (hone_gate_pairs(old, new, PAIRS, NULL, &r, &e) != HONE_OK) {
    fprintf(stderr, "gate_replay: %s\n", e.what);
    exit(6);
  }
  t->cases++;
  t->worse += r.verdict == HONE_GATE_WORSE;
  t->none += r.verdict == HONE_GATE_NONE;
  t->pairs += r.pairs;
}

static void replay(const char *name, noise fill, const recording *from, unsigned cases, tally *same,
                   tally *slower) {
  tally t[2] = {{0}, {0}};
  double w[WINDOW];
  for (unsigned i = 0; i < cases; i++)
    for (int k = 0; k < 2; k++) {
      fill(from, w);
      scale(w);
      run_case(w, k ? SLOWDOWN : 0, &t[k]);
    }
  printf("%-34s %8.2f %% %8.2f %% %8.2f %% %8.2f %% %7.1f %7.1f\n", name, 100.0 * t[0].worse / cases,
         100.0 * t[0].none / cases, 100.0 * t[1].worse / cases, 100.0 * t[1].none / cases, t[0].pairs / cases,
         t[1].pairs / cases);
  if (!same) return;
  same->worse += t[0].worse;
  same->cases += t[0].cases;
  slower->worse += t[1].worse;
  slower->cases += t[1].cases;
}

static int read_noise(const char *path, recording *out) {
  FILE *f = fopen(path, "r");
  char line[400];
  out->v = calloc(MOST, sizeof *out->v);
  out->n = 0;
  while (f && out->v && out->n < MOST && fgets(line, sizeof line, f))
    if (line[0] != '#' && (out->v[out->n] = strtod(line, NULL)) > 0) out->n++;
  if (f) fclose(f);
  if (f && out->n >= WINDOW) return 0;
  fprintf(stderr, "gate_replay: %s: %s\n", path, f ? "fewer numbers than one case takes" : strerror(errno));
  return 3;
}

int main(int argc, char **argv) {
  unsigned cases = 2000;
  int first = 1, files;
  tally same = {0}, slower = {0};
  state = 20260101;
  for (; first + 1 < argc && argv[first][0] == '-'; first += 2)
    if (argv[first][1] == 'n')
      cases = (unsigned)atoi(argv[first + 1]);
    else
      state = strtoull(argv[first + 1], NULL, 10);
  if ((files = argc - first) < 1) {
    fprintf(stderr, "usage: gate_replay [-n CASES] [-s SEED] FILE...\n");
    return 2;
  }
  printf("%u cases of A/A and of +5 %% each, windows scaled to a CV of 3 %%\n\n", cases);
  printf("%-34s %10s %10s %10s %10s %15s\n", "", "A/A", "A/A", "+5 %", "+5 %", "pairs until");
  printf("%-34s %10s %10s %10s %10s %7s %7s\n", "noise", "flagged", "open", "caught", "open", "A/A", "+5 %");
  for (int i = 0; i < files; i++) {
    recording r;
    const char *slash = strrchr(argv[first + i], '/');
    int code = read_noise(argv[first + i], &r);
    if (code) return code;
    unsigned part = cases * (unsigned)(i + 1) / (unsigned)files - cases * (unsigned)i / (unsigned)files;
    replay(slash ? slash + 1 : argv[first + i], recorded, &r, part, &same, &slower);
    free(r.v);
  }
  const struct {
    const char *name;
    noise fill;
  } formulas[] = {{"formula: normal, independent", white},
                  {"formula: neighbours alike (0.8)", alike},
                  {"formula: neighbours unlike (-0.5)", unlike},
                  {"formula: drift", drifting},
                  {"formula: outliers", outliers},
                  {"formula: bursts", bursts}};
  for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++)
    replay(formulas[i].name, formulas[i].fill, NULL, cases, NULL, NULL);
  double flagged = 100.0 * same.worse / same.cases, caught = 100.0 * slower.worse / slower.cases;
  printf("\nfalse alarms %.2f %%, +5 %% caught %.2f %%\n", flagged, caught);
  return flagged <= 1 && caught >= 95 ? 0 : 1;
}
