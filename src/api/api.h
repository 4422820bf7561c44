/* What the files of the public API share. */
#ifndef HN_API_API_H
#define HN_API_API_H

#include "optimize/passes/optimize.h"
#include "optimize/plan/plan.h"

#include <hone/session.h>

/* The passes' report as the public structure; *to is zeroed before. */
hone_status hn_export_rewrites(const hn_pass_report *from, hone_rewrites *to, hone_error *error);

/* The plan inside, and its engine's tuned tactics with the file that they are kept in ("": none). */
const hn_plan *hn_api_plan(const hone_plan *plan);
struct hn_context;
const struct hn_context *hn_api_context(const hone_context *context);
hn_tuned *hn_api_tuned(const hone_plan *plan, const char **path);

#endif
