/* Runs a program and keeps everything it said. */
#ifndef HONE_TESTS_CLI_PROCESS_H
#define HONE_TESTS_CLI_PROCESS_H

#include <jansson.h>
#include <stdbool.h>

typedef struct process {
  int code; /* exit code; 128 + signal when it died of one */
  char *out, *err;
} process;

/* argv is a NULL-terminated list after the program's name. interrupt_ms > 0: sends SIGINT so long after it
 * began to answer interrupts. */
process process_run(const char *folder, int interrupt_ms, const char *const *argv);
void process_free(process *p);
json_t *process_json(const process *p); /* of standard output; fails the test when it is no JSON */
int count_lines(const char *text);

#endif
