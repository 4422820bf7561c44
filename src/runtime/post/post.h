/* What the files of this folder share. */
#ifndef HN_RUNTIME_POST_H
#define HN_RUNTIME_POST_H

#include "base/error.h"

#include <hone/post.h>

/* Row-major numbers on the host, or why not. */
hone_status hn_post_check(const char *function, const hone_tensor *tensor, hone_error *error);
/* How many classes a sample has scores of: they lie along the one axis beside the samples'. 0: it holds none.
 */
int64_t hn_post_classes(const hone_tensor_desc *desc, int64_t rows);

#endif
