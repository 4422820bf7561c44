#include "optimize/step/fusions.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

const char *const hn_fusion_names[] = {
#define FUSION(name, about) #name,
#include "optimize/step/fusions.def"
#undef FUSION
    0};

static const char *const abouts[] = {
#define FUSION(name, about) about,
#include "optimize/step/fusions.def"
#undef FUSION
};

const char *hn_fusion_about(hn_fusion f) { return f < HN_FUSIONS ? abouts[f] : ""; }

static uint32_t fitting(const char *glob) {
  uint32_t set = 0;
  for (uint32_t f = 0; f < HN_FUSIONS; f++)
    if (fnmatch(glob, hn_fusion_names[f], 0) == 0) set |= 1u << f;
  return set;
}

uint32_t hn_fusions_off(const char *globs) {
  uint32_t named = 0, off = 0;
  for (const char *at = globs; at && *at;) {
    const size_t len = strcspn(at, ",");
    const bool negative = *at == '-';
    char glob[96];
    snprintf(glob, sizeof glob, "%.*s", (int)(len - negative), at + negative);
    *(negative ? &off : &named) |= fitting(glob);
    at += len + (at[len] == ',');
  }
  return off | (named ? ~named & ((1u << HN_FUSIONS) - 1) : 0);
}
