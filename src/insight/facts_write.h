/* The members of facts v1 without the enclosing braces, so that `profile --json` can add derived tables
 * beside them. */
#ifndef HN_INSIGHT_FACTS_WRITE_H
#define HN_INSIGHT_FACTS_WRITE_H

#include "base/str.h"

#include <hone/facts.h>

void hn_facts_write_members(hn_str *out, const hone_facts *facts);
/* Single members, for reports. */
void hn_facts_write_roofs(hn_str *out, const hone_facts *facts);
void hn_facts_write_memory(hn_str *out, const hone_facts *facts);
void hn_facts_write_lanes(hn_str *out, const hone_facts *facts);

#endif
