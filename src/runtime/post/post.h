/* What the files of this folder share. */
#ifndef HN_RUNTIME_POST_H
#define HN_RUNTIME_POST_H

#include "base/error.h"

#include <hone/post.h>

/* Row-major numbers on the host, or why not. */
hone_status hn_post_check(const char *function, const hone_tensor *tensor, hone_error *error);

#endif
