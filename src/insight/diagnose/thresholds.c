/* The one table of thresholds, and overriding them. */
#include "insight/diagnose/rule.h"

#include "base/error.h"
#include "base/mem.h"
#include "insight/profile/bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct hone_thresholds defaults = {
#define THRESHOLD(name, value, unit, source) .name = (value),
#include "insight/diagnose/thresholds.def"
#undef THRESHOLD
};

static const hone_threshold_info list[] = {
#define THRESHOLD(name, value, unit, source) {#name, (value), (unit), (source)},
#include "insight/diagnose/thresholds.def"
#undef THRESHOLD
};

static const size_t offsets[] = {
#define THRESHOLD(name, value, unit, source) offsetof(struct hone_thresholds, name),
#include "insight/diagnose/thresholds.def"
#undef THRESHOLD
};

/* Profiles are classified by the same two limits before there are thresholds. */
#define THRESHOLD(name, value, unit, source) value_of_##name = (int)(value),
enum {
#include "insight/diagnose/thresholds.def"
};
#undef THRESHOLD
_Static_assert(value_of_roof_reached == (int)HN_ROOF_REACHED && value_of_roof_far == (int)HN_ROOF_FAR,
               "the classes of profiles have other limits than the table");

const struct hone_thresholds *hn_thresholds_default(void) { return &defaults; }

const hone_threshold_info *hone_threshold_list(size_t *count) {
  if (!count) return NULL;
  *count = sizeof list / sizeof *list;
  return list;
}

hone_thresholds *hone_thresholds_create(void) {
  hone_thresholds *t = hn_malloc(sizeof *t);
  if (t) *t = defaults;
  return t;
}

void hone_thresholds_destroy(hone_thresholds *t) { hn_free(t); }

static ptrdiff_t find(const char *name, size_t length) {
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    if (strlen(list[i].name) == length && strncmp(list[i].name, name, length) == 0) return (ptrdiff_t)i;
  return -1;
}

double hone_thresholds_get(const hone_thresholds *t, const char *name) {
  if (!name) return NAN;
  ptrdiff_t i = find(name, strlen(name));
  return i < 0 ? NAN : *(const double *)((const char *)(t ? t : &defaults) + offsets[i]);
}

static hone_status set(hone_thresholds *t, const char *name, size_t length, double value, hone_error *error) {
  ptrdiff_t i = find(name, length);
  if (i < 0) {
    hone_status status = hn_fail(error, HONE_ERROR_USAGE, "there is no threshold '%.*s'", (int)length, name);
    hn_error_hint(error, "hone diagnose --thresholds lists them");
    return status;
  }
  if (!isfinite(value))
    return hn_fail(error, HONE_ERROR_USAGE, "threshold '%.*s' is not a number", (int)length, name);
  *(double *)((char *)t + offsets[i]) = value;
  return HONE_OK;
}

hone_status hone_thresholds_set(hone_thresholds *t, const char *name, double value, hone_error *error) {
  if (!name) return hn_fail(error, HONE_ERROR_USAGE, "hone_thresholds_set: name may not be NULL");
  return set(t, name, strlen(name), value, error);
}

hone_status hone_thresholds_parse(hone_thresholds *t, const char *text, hone_error *error) {
  if (!text) return hn_fail(error, HONE_ERROR_USAGE, "hone_thresholds_parse: text may not be NULL");
  size_t length = strcspn(text, "=");
  char *end = NULL;
  double value = text[length] ? strtod(text + length + 1, &end) : NAN;
  if (!end || end == text + length + 1 || *end)
    return hn_fail(error, HONE_ERROR_USAGE, "a threshold is NAME=NUMBER, not '%s'", text);
  return set(t, text, length, value, error);
}
