/* What watches the library's long work. */
#ifndef HONE_CLI_WATCH_H
#define HONE_CLI_WATCH_H

#include <hone/hone.h>

/* The same for the library's long work, which Ctrl-C stops (watch.c). */
const hone_watch *cli_watch(void);

#endif
