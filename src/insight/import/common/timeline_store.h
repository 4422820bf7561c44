/* What a time line keeps of its events, between timeline_collect.c, timeline_join.c (which operator started
 * what, iterations) and timeline_facts.c (writing facts). */
#ifndef HN_INSIGHT_IMPORT_TIMELINE_STORE_H
#define HN_INSIGHT_IMPORT_TIMELINE_STORE_H

#include "base/vec.h"
#include "insight/import/common/timeline.h"

enum { HN_NO_EVENT = -1 };

typedef struct hn_timeline_event {
  int64_t start, end;
  uint64_t bytes;
  uint32_t name, correlation, op, launch;
  uint16_t lane, process;
  uint8_t class, kind;
  uint8_t memory; /* source, and << 4 target */
  uint8_t reference;
} hn_timeline_event;

typedef struct hn_timeline_store {
  hn_timeline_event *ptr;
  size_t len, cap;
  size_t most, ranges; /* room; how many of the events are ranges */
  int64_t horizon;     /* events that start then or later are not kept, but for ranges */
} hn_timeline_store;

/* Of one name, over the whole trace: on devices, and on the host. */
typedef struct hn_timeline_total {
  uint64_t count[2];
  double ns[2];
} hn_timeline_total;

typedef struct hn_timeline_stored_lane {
  uint64_t a, b;
  bool device, used;
  const char *name;
} hn_timeline_stored_lane;

/* A stretch of time that counts as one run of the network. */
typedef struct hn_timeline_window {
  int64_t start, end;
  uint32_t name;
} hn_timeline_window;

struct hn_timeline {
  hn_arena arena; /* names */
  struct name_slot {
    uint64_t hash;
    uint32_t id1; /* id + 1; 0: free */
  } * name_slots;
  size_t name_slot_count;
  HN_VEC(const char *) names;
  HN_VEC(hn_timeline_total) totals; /* by name */
  size_t name_bytes;
  HN_VEC(hn_timeline_stored_lane) lanes;
  HN_VEC(uint64_t) processes;
  struct launch_slot {
    hone_launch launch;
    uint32_t row; /* 0: free */
  } * launches;
  size_t launch_count;
  hn_timeline_store device, host;
  uint64_t counts[HN_EVENT_RANGE + 1];
  uint64_t dropped;
  bool failed; /* out of memory: sticky */
  /* found when joining, by the index of the event */
  int32_t *host_parent; /* of a host event: the innermost operator (or range) around it; HN_NO_EVENT */
  int32_t *started_by;  /* of a device event: the call that started it */
  int32_t *device_op;   /* of a device event: the operator (or range) that it belongs to */
  HN_VEC(hn_timeline_window) windows;
  bool *is_mark; /* by name: ranges called so are the iterations */
};

/* Sorts the events by time and fills what is "found when joining". */
hone_status hn_timeline_join(hn_timeline *t, hone_error *error);

#endif
