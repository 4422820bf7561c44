/* One operator that decides a run of which nothing but times is known. */
#ifndef HN_INSIGHT_LONE_H
#define HN_INSIGHT_LONE_H

#include "insight/diagnose/rule.h"

/* Adds a finding to the running rule where one operator takes most of the time, several times as long as any
 * other. */
void hn_find_lone(hn_diagnosis *d);

#endif
