/* Long runs: does latency, memory, temperature or clock move? (hone bench --duration) */
#ifndef HONE_CLI_STEADY_H
#define HONE_CLI_STEADY_H

#include <hone/hone.h>
#include <jansson.h>

/* "90", "30s", "10m", "1h" -> seconds; negative: none of these. */
double steady_seconds(const char *text);
json_t *steady_json(const hone_steady *run);
void steady_text(const hone_steady *run);
/* Lowest and highest of the readings that succeeded; false: none did. */
bool steady_range(const double *celsius, size_t n, double *low, double *high);

/* The slowest runs, one by one (slow.c). */
void slow_text(const hone_steady *run);
json_t *slow_json(const hone_steady *run);

#endif
