/* What tests of a plan share. */
#ifndef HN_API_LOAD_RUN_H
#define HN_API_LOAD_RUN_H

#include <hone/load.h>

/* Whether the samples fit the plan. */
hone_status hn_load_check(const hone_load_target *target, const hone_load_settings *settings,
                          hone_error *error);

#endif
