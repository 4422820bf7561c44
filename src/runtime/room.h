/* Memory of the device that a run computes in. Inside of runtime only. */
#ifndef HN_RUNTIME_ROOM_H
#define HN_RUNTIME_ROOM_H

#include "optimize/step/step.h"

enum { HN_BLOCK_ALIGN = 4096 }; /* of what lies behind each other in a lent block */

/* Bytes from one lane's workspace to the next one's. */
size_t hn_room_of_lane(const hn_plan *plan);
/* There is none for activations (workspace: for workspaces): names the tensor, or the step, that takes the
 * most. */
hone_status hn_room_missing(const hn_plan *plan, bool workspace, hone_error *error);

#endif
