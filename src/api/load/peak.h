/* The search for the highest valid rate, whatever serves. */
#ifndef HN_API_LOAD_PEAK_H
#define HN_API_LOAD_PEAK_H

#include <hone/load.h>

typedef struct hn_trials {
  void *arg;
  hone_status (*test)(void *arg, const hone_load_settings *settings, hone_load_result *out,
                      hone_error *error);
} hn_trials;

hone_status hn_peak_search(const hn_trials *trials, const hone_load_settings *settings, uint32_t steps,
                           hone_load_peak *out, hone_error *error);

#endif
