#include "improve/kernel_speeds.h"

#include "base/os.h"
#include "base/str.h"
#include "improve/roof_cache.h"

#include <ctype.h>
#include <hone/version.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ places */

static double tensor_bytes(const hone_step_tensor *t) {
  const int64_t bytes = t->desc.dtype == HONE_DTYPE_NONE ? 0 : hone_desc_bytes(&t->desc);
  return bytes > 0 ? (double)bytes : 0;
}

hone_kernel_place hn_kernel_place(const hone_step *s, const hone_machine *m) {
  double bytes = 0;
  for (uint32_t i = 0; i < s->n_inputs; i++) bytes += tensor_bytes(&s->input[i]);
  for (uint32_t i = 0; i < s->n_outputs; i++) bytes += tensor_bytes(&s->output[i]);
  if (bytes <= (double)m->l2 * (m->threads ? m->threads : 1)) return HONE_KERNEL_OWN_CACHES;
  return bytes <= (double)m->l3 ? HONE_KERNEL_LAST_CACHE : HONE_KERNEL_MEMORY;
}

/* ------------------------------------------------------------------ learning */

static void add(hn_kernel_sums *sums, const char *tactic, hone_kernel_place place, double measured,
                double model) {
  uint32_t i = 0;
  while (i < sums->count && strcmp(sums->kernel[i].tactic, tactic) != 0) i++;
  if (i == HONE_MOST_KERNELS) return;
  if (i == sums->count) sums->kernel[sums->count++].tactic = tactic;
  sums->kernel[i].measured[place] += measured;
  sums->kernel[i].model[place] += model;
}

void hn_kernel_sums_add(hn_kernel_sums *sums, const hn_plan *plan, const double *seconds) {
  for (size_t i = 0; i < plan->steps.len; i++) {
    const hn_step *s = &plan->steps.ptr[i];
    /* Tuned steps bring a measurement in place of their model's word; those on one thread are other work. */
    if (s->kind != HN_STEP_TACTIC || s->tuned || s->threads || !(seconds[i] > 0) || !(s->predicted_s > 0))
      continue;
    add(sums, s->tactic->name, hn_kernel_place(&s->desc, &plan->machine), seconds[i], s->predicted_s);
  }
}

static hone_kernel_speed *speed_of(hone_kernel_speeds *speeds, const char *tactic) {
  for (uint32_t i = 0; i < speeds->count; i++)
    if (strcmp(speeds->kernel[i].tactic, tactic) == 0) return &speeds->kernel[i];
  if (speeds->count == HONE_MOST_KERNELS) return NULL;
  hone_kernel_speed *k = &speeds->kernel[speeds->count++];
  *k = (hone_kernel_speed){0};
  snprintf(k->tactic, sizeof k->tactic, "%s", tactic);
  return k;
}

uint32_t hn_kernel_speeds_learn(hone_kernel_speeds *speeds, const hn_kernel_sums *sums) {
  uint32_t changed = 0;
  for (uint32_t i = 0; i < sums->count; i++) {
    hone_kernel_speed *k = speed_of(speeds, sums->kernel[i].tactic);
    for (int place = 0; k && place < HONE_KERNEL_PLACES; place++) {
      if (!(sums->kernel[i].model[place] > 0)) continue;
      const double now = sums->kernel[i].measured[place] / sums->kernel[i].model[place],
                   known = k->factor[place];
      if (known > 0 && fabs(now - known) <= HONE_KERNELS_DIFFER * known) continue;
      k->factor[place] = now;
      changed++;
    }
  }
  return changed;
}

void hn_kernel_speeds_fill(hone_kernel_speeds *speeds, const hone_kernel_speeds *old) {
  for (uint32_t i = 0; i < old->count; i++) {
    hone_kernel_speed *k = speed_of(speeds, old->kernel[i].tactic);
    for (int place = 0; k && place < HONE_KERNEL_PLACES; place++)
      if (k->factor[place] <= 0) k->factor[place] = old->kernel[i].factor[place];
  }
}

double hn_kernel_factor(const hone_kernel_speeds *speeds, const char *tactic, hone_kernel_place place) {
  for (uint32_t i = 0; i < speeds->count; i++) {
    const hone_kernel_speed *k = &speeds->kernel[i];
    if (strcmp(k->tactic, tactic) != 0) continue;
    for (int away = 0; away < HONE_KERNEL_PLACES; away++)
      for (int side = 0; side < 2; side++) {
        const int at = (int)place + (side ? away : -away);
        if (at >= 0 && at < HONE_KERNEL_PLACES && k->factor[at] > 0) return k->factor[at];
      }
  }
  return 0;
}

/* ------------------------------------------------------------------ cache */

static void key_of(const hn_backend *backend, const hn_device *device, char *buf, size_t size) {
  char about[400] = "";
  if (backend->fingerprint) backend->fingerprint(device, about, sizeof about);
  snprintf(buf, size, "hone-kernels 1 | %s | %s", hone_version(), about);
}

/* Names are a plugin's choice: what would end a word or a line of the file stands there as %20. */
static void put_name(hn_str *o, const char *name) {
  for (const unsigned char *p = (const unsigned char *)name; *p; p++)
    hn_str_printf(o, *p <= ' ' || *p == '%' || *p == '|' || *p >= 0x7f ? "%%%02X" : "%c", *p);
}

/* False: the word is none that put_name wrote. */
static bool take_name(const char *word, char *name, size_t size) {
  size_t n = 0;
  for (unsigned code; *word && n + 1 < size; n++) {
    if (*word != '%') {
      name[n] = *word++;
      continue;
    }
    if (!isxdigit((unsigned char)word[1]) || !isxdigit((unsigned char)word[2]) ||
        sscanf(word + 1, "%2x", &code) != 1 || !code)
      return false;
    name[n] = (char)code;
    word += 3;
  }
  name[n] = 0;
  return n && !*word;
}

bool hn_kernel_speeds_read(const hn_backend *backend, const hn_device *device, hone_kernel_speeds *out) {
  char key[512];
  hn_str lines = {0};
  *out = (hone_kernel_speeds){0};
  key_of(backend, device, key, sizeof key);
  bool good = hn_roof_cache_read(key, &lines);
  for (const char *line = good ? lines.ptr : NULL; good && line && *line;) {
    hone_kernel_speed k = {0};
    char word[3 * sizeof k.tactic]; /* 141 is the longest that put_name writes */
    good = out->count < HONE_MOST_KERNELS &&
           sscanf(line, "%141s %lf %lf %lf", word, &k.factor[0], &k.factor[1], &k.factor[2]) ==
               1 + HONE_KERNEL_PLACES &&
           take_name(word, k.tactic, sizeof k.tactic);
    for (int i = 0; i < HONE_KERNEL_PLACES; i++) good = good && isfinite(k.factor[i]) && k.factor[i] >= 0;
    if (good) out->kernel[out->count++] = k;
    line += strcspn(line, "\n");
    line += *line == '\n';
  }
  hn_str_free(&lines);
  if (!good) *out = (hone_kernel_speeds){0};
  out->cached = out->quiet = good && out->count;
  return out->cached;
}

void hn_kernel_speeds_write(const hn_backend *backend, const hn_device *device, const hone_kernel_speeds *s) {
  char key[512];
  hn_str lines = {0};
  key_of(backend, device, key, sizeof key);
  for (uint32_t i = 0; i < s->count; i++) {
    if (!s->kernel[i].tactic[0]) continue; /* no name, no line */
    put_name(&lines, s->kernel[i].tactic);
    hn_str_printf(&lines, " %.4g %.4g %.4g\n", s->kernel[i].factor[0], s->kernel[i].factor[1],
                  s->kernel[i].factor[2]);
  }
  hn_roof_cache_write(key, &lines);
  hn_str_free(&lines);
}

/* ------------------------------------------------------------------ neighbours */

hn_neighbours hn_neighbours_look(void) {
  return (hn_neighbours){hn_cpu_busy_seconds(), hn_cpu_own_seconds(), hn_now_ns()};
}

bool hn_neighbours_quiet(const hn_neighbours *since) {
  const hn_neighbours now = hn_neighbours_look();
  if (since->busy < 0 || now.busy < 0) return true; /* the system does not tell */
  const double others = now.busy - since->busy - (now.own - since->own);
  return others <= HONE_ROOFS_QUIET * (double)(now.ns - since->ns) * 1e-9 * hn_cpu_count();
}
