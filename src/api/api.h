/* What the files of the public API share. */
#ifndef HN_API_API_H
#define HN_API_API_H

#include "optimize/passes/optimize.h"

#include <hone/model.h>

/* The passes' report as the public structure; *to is zeroed before. */
hone_status hn_export_rewrites(const hn_pass_report *from, hone_rewrites *to, hone_error *error);

#endif
