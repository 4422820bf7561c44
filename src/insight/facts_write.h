/* The members of facts v1 without the enclosing braces, so that `profile --json` can add derived tables
 * beside them. */
#ifndef HN_INSIGHT_FACTS_WRITE_H
#define HN_INSIGHT_FACTS_WRITE_H

#include "base/str.h"
#include "insight/facts_table.h"

void hn_facts_write_members(hn_str *out, const hone_facts *facts);
/* A single one, for reports. */
void hn_facts_write_table(hn_str *out, const hone_facts *facts, hn_fact_id table);

#endif
