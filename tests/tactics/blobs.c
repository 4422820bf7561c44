#include "tactics/blobs.h"

#include "backends/cpu/kernels/features.h"
#include "base/checksum.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4000, NAME = 80 };

typedef struct row {
  char tactic[NAME];
  unsigned version;
  char tier[24];
  uint64_t sum;
  bool seen; /* of the golden file: this processor has packed it, too */
} row;

static row packed[MOST], golden[MOST];
static size_t n_packed, n_golden;

/* Leaves `value` all over the stack that a call will use. */
static __attribute__((noinline)) void scribble(int value) {
  volatile unsigned char deep[32768];
  for (size_t i = 0; i < sizeof deep; i++) deep[i] = (unsigned char)value;
}

static unsigned char *pack(const hone_tactic_desc *t, const hone_step *step, const hone_machine *m,
                           size_t bytes, int fill) {
  hone_error error = {0};
  unsigned char *blob = hn_aligned(64, (bytes + 63) / 64 * 64);
  memset(blob, fill, (bytes + 63) / 64 * 64);
  scribble(fill);
  if (!t->prepack(step, m, blob, &error)) return blob;
  fprintf(stderr, "%s: %s\n", t->name, error.what);
  exit(1);
}

static row *find(row *rows, size_t n, const char *tactic, const char *tier) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(rows[i].tactic, tactic) && !strcmp(rows[i].tier, tier)) return &rows[i];
  return NULL;
}

static row *add(row *rows, size_t *n, const char *tactic, unsigned version, const char *tier) {
  if (*n == MOST) exit(1);
  row *r = &rows[(*n)++];
  snprintf(r->tactic, sizeof r->tactic, "%s", tactic);
  snprintf(r->tier, sizeof r->tier, "%s", tier);
  r->version = version;
  return r;
}

void blobs_note(const hone_tactic_desc *t, const hone_step *step, const hone_machine *m, int tier) {
  hone_tactic_need need = {0};
  hone_error error = {0};
  if (!t->prepack || !t->need || t->need(step, m, &need, &error) || !need.blob_bytes) return;
  const char *name = hn_isa_name((hn_isa)tier);
  row *r = find(packed, n_packed, t->name, name);
  if (!r) r = add(packed, &n_packed, t->name, t->version, name);
  /* Holes between members are whatever memory had before; they are the bytes in which two packings differ. */
  unsigned char *a = pack(t, step, m, need.blob_bytes, 0x00), *b = pack(t, step, m, need.blob_bytes, 0xff);
  for (size_t i = 0; i < need.blob_bytes; i++)
    if (a[i] != b[i]) a[i] = 0;
  /* Sines have the last bits of the C library. */
  const bool exact = strcmp(t->name, "dft") != 0;
  const uint64_t of[] = {r->sum, need.blob_bytes, exact ? hn_checksum(a, need.blob_bytes) : 0};
  r->sum = hn_checksum(of, sizeof of);
  hn_free(a), hn_free(b);
}

static bool read_golden(const char *path) {
  FILE *f = fopen(path, "r");
  row r = {0};
  char line[300];
  if (!f) return false;
  while (fgets(line, sizeof line, f)) {
    unsigned long long sum;
    if (line[0] == '#' || sscanf(line, "%79s %u %23s %llx", r.tactic, &r.version, r.tier, &sum) != 4)
      continue;
    add(golden, &n_golden, r.tactic, r.version, r.tier)->sum = sum;
  }
  fclose(f);
  return true;
}

static int by_name(const void *a, const void *b) {
  const row *x = a, *y = b;
  const int order = strcmp(x->tactic, y->tactic);
  return order ? order : strcmp(x->tier, y->tier);
}

/* What this processor cannot pack stays as it is. */
static int write_golden(const char *path) {
  for (size_t i = 0; i < n_golden; i++)
    if (!hn_cpu_runs(hn_isa_parse(golden[i].tier))) {
      row *r = add(packed, &n_packed, golden[i].tactic, golden[i].version, golden[i].tier);
      r->sum = golden[i].sum;
    }
  qsort(packed, n_packed, sizeof *packed, by_name);
  FILE *f = fopen(path, "w");
  if (!f) return 1;
  fprintf(
      f,
      "# What tactics pack for the cases of blobs.txt: tactic, version, tier, sum. A sum that changes wants "
      "another\n"
      "# version of its tactic; then check_tactics tests/tactics/blobs.txt --blobs FILE --update-blobs.\n");
  for (size_t i = 0; i < n_packed; i++)
    fprintf(f, "%s %u %s %016llx\n", packed[i].tactic, packed[i].version, packed[i].tier,
            (unsigned long long)packed[i].sum);
  return fclose(f) != 0;
}

/* Tiers of which the file has no row were on no processor on which it was made. */
static bool knows_tier(const char *tier) {
  for (size_t i = 0; i < n_golden; i++)
    if (!strcmp(golden[i].tier, tier)) return true;
  return false;
}

/* What the file has and this processor, which could have packed it, has not. */
static int judge_missing(void) {
  int wrong = 0;
  for (size_t i = 0; i < n_golden; i++) {
    const row *g = &golden[i];
    const size_t n = strlen(g->tactic);
    if (g->seen || !hn_cpu_runs(hn_isa_parse(g->tier))) continue;
    if (!hn_cpu()->fp16 && n > 4 && !strcmp(g->tactic + n - 4, "_f16")) continue; /* wants AVX512-FP16 */
    printf("FAIL %s on %s: it packs nothing, the file has a sum: a case went, or --update-blobs\n", g->tactic,
           g->tier);
    wrong++;
  }
  return wrong;
}

int blobs_judge(const char *path, bool update) {
  int wrong = 0;
  if (!read_golden(path) && !update) {
    fprintf(stderr, "cannot read %s\n", path);
    return 1;
  }
  if (update) return write_golden(path);
  for (size_t i = 0; i < n_packed; i++) {
    const row *p = &packed[i];
    row *g = find(golden, n_golden, p->tactic, p->tier);
    if (!knows_tier(p->tier)) continue;
    if (g) g->seen = true;
    const char *why = !g                         ? "is not in the file: --update-blobs"
                      : g->version != p->version ? "has another version than in the file: --update-blobs"
                      : g->sum != p->sum         ? "packs otherwise, and has the same version: raise it"
                                                 : NULL;
    if (!why) continue;
    printf("FAIL %s on %s: it %s\n", p->tactic, p->tier, why);
    wrong++;
  }
  wrong += judge_missing();
  printf("%zu sums of what tactics pack, %d wrong\n", n_packed, wrong);
  return wrong;
}
