/* What the tests of time line importers ask of facts. */
#ifndef TESTS_IMPORTERS_TIMELINE_HELP_H
#define TESTS_IMPORTERS_TIMELINE_HELP_H

#include <hone/hone.h>

/* Imports text under a file name; fails the test when that fails. */
hone_facts *import_text(const char *name, const char *text);
/* Imports text that must be refused; the error. */
hone_error refuse_text(const char *name, const char *text, hone_status status);

/* Milliseconds and number of the spans of a kind; in_runs: of those within iterations. */
double span_ms(const hone_facts *facts, hone_span_kind kind, bool in_runs);
size_t span_count(const hone_facts *facts, hone_span_kind kind, bool in_runs);
/* The first span whose own or step's name starts so; fails the test when there is none. */
const hone_span *find_span(const hone_facts *facts, const char *name);
const hone_step_fact *step_of_span(const hone_facts *facts, const hone_span *span);
/* A counter of the whole run; -1: there is none. */
double counter(const hone_facts *facts, const char *name);
const char *unmeasured(const hone_facts *facts, const char *what); /* NULL: not noted */
/* A profile that contradicts itself in nothing. */
hone_profile *sound_profile(const hone_facts *facts);

#endif
