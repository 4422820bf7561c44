/* The writers, and the pieces of JSON that several of them share. Each writer fills a text buffer; report.c
 * hands it on. */
#ifndef HN_INSIGHT_REPORT_H
#define HN_INSIGHT_REPORT_H

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"

#include "insight/report/table.h"

#include <hone/compare.h>

typedef hone_status hn_report_writer(const hone_report_input *in, hn_str *out, hone_error *error);

hn_report_writer hn_report_text, hn_report_json, hn_report_csv, hn_report_trace, hn_report_html,
    hn_report_profile_json, hn_report_findings_json, hn_report_comparison_json;

/* The profile that describes the product as it is now: the optimised one where there is one. */
const hone_profile *hn_report_current(const hone_report_input *in);
/* Measured speed-up of the median wall: before / after; 0 without an optimised profile. */
double hn_report_speedup(const hone_report_input *in);
/* The iteration that is nearest to a typical run without interruptions: what a timeline should show. */
int32_t hn_report_typical_iteration(const hone_profile *p);
/* Peak memory in bytes and where it comes from; 0: not measured. */
uint64_t hn_report_memory_peak(const hone_profile *p, const char **source);
/* A counter's value; false when it was not measured. */
bool hn_report_counter(const hone_profile *p, const char *name, double *value);
hone_language hn_report_language(const hone_report_input *in);
const char *hn_report_title(const hone_report_input *in);

/* ---- comparison.c ---- */

void hn_comparison_text(hn_str *o, const hn_look *look, const hone_comparison *c, size_t most);
/* What became of a time, for readers: of a difference that does not count also why. */
const char *hn_change_words(const hn_look *look, const hone_difference *d);
void hn_comparison_members(hn_str *o, const hone_comparison *c); /* "comparison": {...} or null */

/* ---- counters.c ---- */

/* The layers' hardware counters as a table, those of the whole run below; nothing where there are none. */
void hn_counters_text(hn_str *o, const hn_look *look, const hone_profile *p, size_t most);
/* Names of all counters that some layer has, in order of their first appearance; NULL when out of memory. */
const char *const *hn_counter_names(const hone_profile *p, hn_arena *arena, size_t *count);
/* NaN: the layer has no such counter. */
double hn_counter_of(const hone_layer *l, const char *name);
/* What a layer's bound stands on: "counters", "roofs", "ridge"; NULL: the bound is not known. */
const char *hn_bound_source(const hone_layer *l);
/* "compute", "memory"..., in the language of the report. */
const char *hn_limit_words(const hn_look *look, hone_limit bound);

/* ---- findings_text.c ---- */

/* before_ms, after_ms: medians where the findings are about the plan before a rewrite that was measured; 0:
 * none. */
void hn_report_findings_text(hn_str *o, const hn_look *look, const hone_findings *list, bool timed,
                             double before_ms, double after_ms);
/* What is left in the new plan. What the first list says of it already is named in a line. */
void hn_report_left_text(hn_str *o, const hn_look *look, const hone_findings *left,
                         const hone_findings *said);

/* ---- members.c: shared JSON members ---- */

void hn_members_layers(hn_str *o, const hone_profile *p);
/* wall_ms, latency_ms, samples_ms, closure, stages, throughput, types, layers. */
void hn_members_derived(hn_str *o, const hone_profile *p);
void hn_members_findings(hn_str *o, hone_language language, const hone_findings *findings);
/* The list alone, under another name; findings may be NULL: null. */
void hn_members_findings_as(hn_str *o, const char *key, const hone_findings *findings);
/* The whole report as an object; `page` adds what only the HTML page draws (spans, memory samples). */
void hn_members_report(hn_str *o, const hone_report_input *in, bool page);

#endif
