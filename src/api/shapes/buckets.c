#include "api/shapes/buckets.h"

#include "base/error.h"

#include <string.h>

static bool add(hn_bucket_list *l, const hone_size_profile *p, int64_t size) {
  if (size < p->min || size > p->max) return true;
  uint32_t at = 0;
  while (at < l->n && l->size[at] < size) at++;
  if (at < l->n && l->size[at] == size) return true;
  if (l->n == HN_BUCKETS) return false;
  memmove(l->size + at + 1, l->size + at, (l->n - at) * sizeof *l->size);
  l->size[at] = size;
  l->n++;
  return true;
}

static hone_status check(const hone_size_profile *p, hone_error *error) {
  const char *name = p->symbol ? p->symbol : "";
  if (!*name) return hn_fail(error, HONE_ERROR_USAGE, "a profile names no dimension");
  if (p->min < 1 || p->opt < p->min || p->max < p->opt) {
    hn_fail(error, HONE_ERROR_USAGE, "the profile of dimension '%.80s' has no sizes", name);
    hn_error_expected(error, "1 <= min <= opt <= max");
    hn_error_got(error, "min %lld, opt %lld, max %lld", (long long)p->min, (long long)p->opt,
                 (long long)p->max);
    return HONE_ERROR_USAGE;
  }
  if (p->buckets == HONE_BUCKETS_STEP && p->step < 1)
    return hn_fail(error, HONE_ERROR_USAGE, "the buckets of dimension '%.80s' have a step of %lld", name,
                   (long long)p->step);
  if (p->buckets == HONE_BUCKETS_LIST && p->n_list && !p->list)
    return hn_fail(error, HONE_ERROR_USAGE, "the buckets of dimension '%.80s' are missing", name);
  for (uint32_t i = 0; p->buckets == HONE_BUCKETS_LIST && i < p->n_list; i++)
    if (p->list[i] < p->min || p->list[i] > p->max) {
      hn_fail(error, HONE_ERROR_USAGE, "bucket %lld of dimension '%.80s' is outside of its profile",
              (long long)p->list[i], name);
      hn_error_expected(error, "%lld to %lld", (long long)p->min, (long long)p->max);
      return HONE_ERROR_USAGE;
    }
  if (p->buckets <= HONE_BUCKETS_LIST) return HONE_OK;
  return hn_fail(error, HONE_ERROR_USAGE, "the buckets of dimension '%.80s' are of no known kind", name);
}

hone_status hn_buckets_make(const hone_size_profile *p, hn_bucket_list *out, hone_error *error) {
  out->n = 0;
  const hone_status status = check(p, error);
  if (status != HONE_OK) return status;
  bool room = add(out, p, p->min) && add(out, p, p->opt) && add(out, p, p->max);
  if (p->buckets == HONE_BUCKETS_POWERS)
    for (int64_t size = 1; size <= p->max / 2; size *= 2) room = add(out, p, size * 2) && room;
  if (p->buckets == HONE_BUCKETS_STEP && (p->max - p->min) / p->step >= HN_BUCKETS) room = false;
  if (p->buckets == HONE_BUCKETS_STEP && room)
    for (int64_t size = p->min - p->min % p->step; size < p->max - p->step; size += p->step)
      room = add(out, p, size + p->step) && room;
  if (p->buckets == HONE_BUCKETS_LIST)
    for (uint32_t i = 0; i < p->n_list; i++) room = add(out, p, p->list[i]) && room;
  if (room) return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE, "dimension '%.80s' has too many buckets", p->symbol);
  hn_error_expected(error, "at most %d", HN_BUCKETS);
  hn_error_hint(error, "take a larger step, or powers of two");
  return HONE_ERROR_USAGE;
}

int64_t hn_bucket_of(const hn_bucket_list *l, int64_t size) {
  for (uint32_t i = 0; i < l->n; i++)
    if (l->size[i] >= size) return l->size[i];
  return l->n ? l->size[l->n - 1] : size;
}
