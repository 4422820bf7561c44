/* No memory for JSON. */
#ifndef HONE_CLI_MEMORY_H
#define HONE_CLI_MEMORY_H

#include <hone/hone.h>

/* From here on the command ends (exit code 6) when there is no memory for JSON. */
void cli_memory(void);
/* Room for jansson, or the end. */
void *cli_json_room(size_t size);

#endif
