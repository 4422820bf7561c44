/* --profile NAME=MIN:OPT:MAX[:STEP]: what dimensions may be. */
#include "cli/options/profiles.h"

#include <hone/hone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hone_status usage(hone_error *error, const char *text) {
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what, "--profile wants NAME=MIN:OPT:MAX[:STEP], and got '%.100s'",
           text);
  snprintf(error->hint, sizeof error->hint,
           "N=1:8:32 plans for powers of two, N=1:8:32:4 for multiples of 4");
  return HONE_ERROR_USAGE;
}

/* Of "N=1:8:32,H=..." what stands before the comma; *text moves behind it. The name is cut out of `text`. */
static hone_status take_profile(char **text, hone_size_profile *out, hone_error *error) {
  char whole[128], *at = *text, *end = strchr(at, ',');
  long long number[4] = {0};
  int n = 0;
  if (end) *end = 0;
  snprintf(whole, sizeof whole, "%s", at);
  *text = end ? end + 1 : at + strlen(at);
  char *equals = strrchr(at, '=');
  if (!equals || equals == at) return usage(error, whole);
  *equals = 0;
  for (char *c = equals + 1; n < 4; n++) {
    char *stop = NULL;
    number[n] = strtoll(c, &stop, 10);
    if (stop == c || (*stop && *stop != ':')) return usage(error, whole);
    c = stop + 1;
    if (!*stop) break;
    if (n == 3) return usage(error, whole);
  }
  if (n < 2) return usage(error, whole);
  *out = (hone_size_profile){.symbol = at, .min = number[0], .opt = number[1], .max = number[2]};
  if (n == 3) out->buckets = HONE_BUCKETS_STEP, out->step = number[3];
  return HONE_OK;
}

hone_status cli_profiles(const cli_args *args, char **texts, hone_size_profile *out, uint32_t *n,
                         hone_error *error) {
  *n = 0;
  for (size_t i = 0; i < args->profiles.n; i++) {
    char *at = texts[i] = strdup(args->profiles.item[i]);
    if (!at)
      return *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory"}, error->status;
    while (*at) {
      hone_size_profile p;
      const hone_status status = take_profile(&at, &p, error);
      if (status != HONE_OK) return status;
      if (*n == HONE_PROFILES) {
        usage(error, p.symbol);
        snprintf(error->what, sizeof error->what, "--profile: more than %d dimensions", HONE_PROFILES);
        return HONE_ERROR_USAGE;
      }
      out[(*n)++] = p;
    }
  }
  return HONE_OK;
}
