/* Reports that are kept: where, when and of what a measurement is. */
#ifndef HONE_CLI_STAMP_H
#define HONE_CLI_STAMP_H

#include "cli/options/options.h"
#include "cli/options/session.h"

#include <hone/hone.h>
#include <jansson.h>

/* Adds where, when and of what a measurement is: commit, hone_version, tag, model, machine, os, device,
 * precision, flags, version, temperature_c_range, profiling_date. */
void cli_stamp(json_t *document, const cli_args *args, const char *path);
/* Processor, its number and the host: "AMD EPYC 9B14, 8 processors, host runner-3". */
void cli_machine(char *buf, size_t size);
/* Now, ISO 8601, UTC. */
void cli_date(char *buf, size_t size);
/* The options that decide about speed (runs, warm-ups, inputs, CLI_OPT_RUN), as they were given, quoted for a
 * shell. False: they do not fit. */
bool cli_flags(const cli_args *args, char *buf, size_t size);
/* The same, one by one, into the record of a session's runs: what commands of findings repeat. Not those of
 * how often it was run, and not the device, which is the record's backend. */
void cli_record_options(const cli_args *args, const cli_session *session, hone_facts *facts);
/* Puts one word, quoted for a shell, at buf + n; returns the new length (which may be past size: cut). */
size_t cli_quote(const char *word, char *buf, size_t size, size_t n);
/* Text of any bytes for JSON: what is no UTF-8 becomes U+FFFD. */
json_t *cli_text(const char *text);
/* Adds a report to the history; the document stays the caller's. */
hone_status cli_history_save(json_t *document, int64_t *id, hone_error *error);

#endif
