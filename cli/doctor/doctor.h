/* What this machine has for hone, what it lacks, what that costs and what to do about it. */
#ifndef HONE_CLI_DOCTOR_H
#define HONE_CLI_DOCTOR_H

#include "cli/options/options.h"

#include <hone/hone.h>

typedef enum cli_health {
  CLI_GOOD,
  CLI_NOTE,  /* to know; nothing is to be done */
  CLI_LACKS, /* hone works, and something is slower or cannot be done */
  CLI_BROKEN /* hone does not work */
} cli_health;

typedef struct cli_check {
  const char *name;  /* of the document */
  const char *title; /* what it is called in the chosen language */
  cli_health health;
  char found[300];
  char cost[300], todo[300]; /* "": none */
} cli_check;

/* Who looks, and where. */
typedef struct cli_patient {
  hone_language language;
  const char *root;        /* put before /proc and /sys; "" but for tests */
  hone_machine machine;    /* of the engine for the processor */
  hone_status works;       /* of a small network that was run */
  hone_error failed;       /* why it did not */
  hone_system_sample seen; /* of the system */
} cli_patient;

/* CHECK(name, "title", "标题"): what looks is cli_check_<name>, in the order of the output. */
#define CHECK(name, en, zh) void cli_check_##name(const cli_patient *patient, cli_check *out);
#include "cli/doctor/checks.def"
#undef CHECK

/* Looks at everything; *checks: static, n of them. */
const cli_check *cli_examine(cli_patient *patient, size_t *n);

/* Words into a check, in the patient's language; both formats take the same arguments. */
void cli_found(const cli_patient *patient, cli_check *out, const char *en, const char *zh, ...)
    __attribute__((format(printf, 3, 5), format(printf, 4, 5)));
void cli_lacks(const cli_patient *patient, cli_check *out, const char *cost_en, const char *cost_zh);
void cli_todo(const cli_patient *patient, cli_check *out, const char *en, const char *zh, ...)
    __attribute__((format(printf, 3, 5), format(printf, 4, 5)));

/* The first line of a file of /proc or /sys, without its newline; false: it cannot be read. */
bool cli_read_line(const cli_patient *patient, const char *path, char *buf, size_t size);
/* What follows "key" and a colon in such a file; false: there is no such line. */
bool cli_read_key(const cli_patient *patient, const char *path, const char *key, char *buf, size_t size);

#endif
