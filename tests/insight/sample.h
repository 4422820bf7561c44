/* A made-up but plausible pair of profiles (a ResNet-50 before and after fusion on two threads), for tests of
 * the reports and for looking at the page. Deterministic. */
#ifndef TESTS_INSIGHT_SAMPLE_H
#define TESTS_INSIGHT_SAMPLE_H

#include <hone/facts.h>

#define SAMPLE_HOSTILE_NAME "<script>alert(1)</script>"

/* Level 0 (every ONNX node a step) or level 2 (fused). The caller destroys it; NULL when out of memory. */
hone_facts *sample_facts(int level);
hone_facts *sample_facts_of(int level, int runs); /* 60 are usual */

#endif
