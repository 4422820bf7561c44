/* Sensors and counters of the processor, as files and system calls give them. */
#ifndef HN_BASE_SENSORS_H
#define HN_BASE_SENSORS_H

#include <stdbool.h>
#include <stddef.h>

/* All take the root of the file system ("" is the machine's own; tests have another) and return NaN where
 * nothing is to be read. */
double hn_sensor_temperature(const char *root); /* hottest processor sensor, Celsius */
double hn_sensor_clock(const char *root);       /* mean of the processors, MHz */
double hn_sensor_throttles(const char *root);   /* thermal slow-downs of all cores since the system's start */

/* What read() of a perf_event counter with total times gives (value, time enabled, time running: three 64-bit
 * words) -> count, scaled to the whole time; NaN when it never ran or the record is incomplete. */
double hn_perf_decode(const void *bytes, size_t size);

#endif
