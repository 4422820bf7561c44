#include "runtime/room.h"

#include "base/error.h"

#include <stdio.h>

size_t hn_room_of_lane(const hn_plan *p) { return hn_round_up(p->workspace_bytes, 256); }

hone_status hn_room_missing(const hn_plan *p, bool workspace, hone_error *error) {
  char purpose[200] = "steps' workspaces";
  const hn_step *most = NULL;
  for (size_t i = 0; workspace && i < p->steps.len; i++) {
    const hn_step *s = &p->steps.ptr[i];
    if (!most || s->need.workspace_bytes > most->need.workspace_bytes) most = s;
  }
  if (most && most->desc.name)
    snprintf(purpose, sizeof purpose, "steps' workspaces (the largest is that of '%.80s', %llu bytes)",
             most->desc.name, (unsigned long long)most->need.workspace_bytes);
  hone_status status =
      workspace
          ? hn_no_memory(p->backend, p->device, hn_room_of_lane(p) * p->lanes, purpose, error)
          : hn_plan_no_memory(p, p->arena_bytes, "a context's activations", 1u << HN_PLACE_ARENA, error);
  if (status == HONE_ERROR_MEMORY) hn_error_hint(error, "use a smaller batch or shape");
  return status;
}
