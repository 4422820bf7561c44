/* Times as people write them. */
#ifndef HONE_CLI_TIMES_H
#define HONE_CLI_TIMES_H

#include <stdbool.h>
#include <stdint.h>

/* "15ms", "10s", "500us", "2m", "1h"; a number alone is seconds. False: it is no such time. */
bool cli_nanoseconds(const char *text, uint64_t *ns);

#endif
