/* The sizes of a dimension for which plans are made. */
#ifndef HN_API_SHAPES_BUCKETS_H
#define HN_API_SHAPES_BUCKETS_H

#include <hone/shapes.h>

enum { HN_BUCKETS = 256 };

typedef struct hn_bucket_list {
  uint32_t n;
  int64_t size[HN_BUCKETS]; /* ascending; min and max are the first and the last */
} hn_bucket_list;

/* Checks the profile. HONE_ERROR_USAGE: what is wrong with it. */
hone_status hn_buckets_make(const hone_size_profile *profile, hn_bucket_list *out, hone_error *error);
/* The smallest that is not below `size`, which is not above the last. */
int64_t hn_bucket_of(const hn_bucket_list *list, int64_t size);

#endif
