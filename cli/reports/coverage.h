/* How well calibration samples stand for others: as a line, and as JSON. */
#ifndef HONE_CLI_COVERAGE_H
#define HONE_CLI_COVERAGE_H

#include <hone/hone.h>
#include <jansson.h>

/* "64, ranges grow by 0.03 % with each at the end; 31 to 72 % of white; 10 classes, 5 to 8 of each". */
const char *cli_coverage_line(const hone_quantize_coverage *c, uint32_t samples, char *buf, size_t size);
/* Only the growth of ranges where a file of ranges says no more. */
json_t *cli_coverage_json(const hone_quantize_coverage *c);

#endif
