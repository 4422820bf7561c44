/* Collecting the events of a trace within bounds. */
#include "insight/import/common/timeline_store.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
  DEVICE_MOST = 1 << 19,
  HOST_MOST = 1 << 19,
  NAMES_MOST = 1 << 17,
  NAME_LENGTH_MOST = 8192,
  LANES_MOST = 4096,
  PROCESSES_MOST = 4096,
  LAUNCH_SLOTS = 1 << 14,
  SAMPLES = 1024
};
#define TIME_MOST INT64_C(4000000000000000000) /* differences stay in range */
#define NAME_BYTES_MOST ((size_t)24 << 20)

void hn_timeline_destroy(hn_timeline *t) {
  if (!t) return;
  hn_vec_free(&t->names);
  hn_vec_free(&t->totals);
  hn_vec_free(&t->lanes);
  hn_vec_free(&t->processes);
  hn_vec_free(&t->windows);
  hn_free(t->name_slots);
  hn_free(t->launches);
  hn_free(t->device.ptr);
  hn_free(t->host.ptr);
  hn_free(t->host_parent);
  hn_free(t->started_by);
  hn_free(t->device_op);
  hn_free(t->is_mark);
  hn_arena_free(&t->arena);
  hn_free(t);
}

/* ---- names ---- */

static bool grow_slots(hn_timeline *t) {
  size_t count = t->name_slot_count ? 2 * t->name_slot_count : 1024;
  struct name_slot *slots = hn_calloc(count, sizeof *slots);
  if (!slots) return false;
  for (size_t i = 0; i < t->name_slot_count; i++) {
    if (!t->name_slots[i].id1) continue;
    size_t at = t->name_slots[i].hash & (count - 1);
    while (slots[at].id1) at = (at + 1) & (count - 1);
    slots[at] = t->name_slots[i];
  }
  hn_free(t->name_slots);
  t->name_slots = slots;
  t->name_slot_count = count;
  return true;
}

/* Long names are cut; what they end in is still told apart, by their hash. */
static const char *keep_name(hn_timeline *t, const char *name, size_t n, uint64_t hash) {
  if (n <= NAME_LENGTH_MOST) return hn_arena_strndup(&t->arena, name, n);
  return hn_arena_printf(&t->arena, "%.*s... #%08x", NAME_LENGTH_MOST - 16, name, (unsigned)hash);
}

static uint32_t name_index(hn_timeline *t, const char *name) {
  size_t n = strlen(name);
  uint64_t hash = hn_hash(name, n, 0);
  if (2 * (t->names.len + 1) > t->name_slot_count && !grow_slots(t)) goto memory;
  size_t at = hash & (t->name_slot_count - 1);
  for (; t->name_slots[at].id1; at = (at + 1) & (t->name_slot_count - 1)) {
    uint32_t id = t->name_slots[at].id1 - 1;
    if (t->name_slots[at].hash == hash && (n > NAME_LENGTH_MOST || strcmp(t->names.ptr[id], name) == 0))
      return id;
  }
  if (t->names.len >= NAMES_MOST || t->name_bytes + n > NAME_BYTES_MOST) return 0;
  const char *copy = keep_name(t, name, n, hash);
  if (!copy || !hn_vec_push(&t->totals, (hn_timeline_total){{0}, {0}}) || !hn_vec_push(&t->names, copy))
    goto memory;
  t->name_bytes += n;
  t->name_slots[at] = (struct name_slot){hash, (uint32_t)t->names.len};
  return (uint32_t)t->names.len - 1;
memory:
  t->failed = true;
  return 0;
}

hn_timeline *hn_timeline_create(void) {
  hn_timeline *t = hn_calloc(1, sizeof *t);
  if (!t) return NULL;
  t->device.most = DEVICE_MOST;
  t->host.most = HOST_MOST;
  t->device.horizon = t->host.horizon = INT64_MAX;
  name_index(t, "(other names)"); /* 0: when there are more than can be kept */
  return t;
}

/* ---- lanes and processes ---- */

static uint32_t find_lane(hn_timeline *t, bool device, uint64_t a, uint64_t b, const char *name) {
  for (size_t i = t->lanes.len; i-- > 0;) {
    const hn_timeline_stored_lane *l = &t->lanes.ptr[i];
    if (l->a == a && l->b == b && l->device == device) return (uint32_t)i;
  }
  /* More threads than any program has: the rest shares the last lane. */
  if (t->lanes.len >= LANES_MOST) return LANES_MOST - 1;
  hn_timeline_stored_lane lane = {a, b, device, false, name ? hn_arena_strdup(&t->arena, name) : NULL};
  if (!hn_vec_push(&t->lanes, lane)) {
    t->failed = true;
    return 0;
  }
  return (uint32_t)t->lanes.len - 1;
}

uint32_t hn_timeline_lane(hn_timeline *t, bool device, uint64_t a, uint64_t b, const char *name) {
  return find_lane(t, device, a, b, name);
}

void hn_timeline_name_lane(hn_timeline *t, bool device, uint64_t a, uint64_t b, const char *name) {
  uint32_t lane = find_lane(t, device, a, b, NULL);
  if (lane < t->lanes.len && t->lanes.ptr[lane].a == a && t->lanes.ptr[lane].b == b)
    t->lanes.ptr[lane].name = hn_arena_strdup(&t->arena, name);
}

static uint16_t find_process(hn_timeline *t, uint64_t process) {
  for (size_t i = t->processes.len; i-- > 0;)
    if (t->processes.ptr[i] == process) return (uint16_t)i;
  if (t->processes.len >= PROCESSES_MOST) return PROCESSES_MOST - 1;
  if (!hn_vec_push(&t->processes, process)) t->failed = true;
  return t->processes.len ? (uint16_t)(t->processes.len - 1) : 0;
}

/* ---- launches ---- */

uint32_t hn_timeline_launch(hn_timeline *t, hone_facts *facts, const hone_launch *launch) {
  if (!t->launches && !(t->launches = hn_calloc(LAUNCH_SLOTS, sizeof *t->launches))) {
    t->failed = true;
    return 0;
  }
  size_t at = hn_hash(launch, sizeof *launch, 0) % LAUNCH_SLOTS;
  for (; t->launches[at].row; at = (at + 1) % LAUNCH_SLOTS)
    if (memcmp(&t->launches[at].launch, launch, sizeof *launch) == 0) return t->launches[at].row;
  if (t->launch_count >= LAUNCH_SLOTS / 2) return 0;
  t->launch_count++;
  t->launches[at].launch = *launch;
  return t->launches[at].row = hone_facts_add_launch(facts, launch);
}

/* ---- events ---- */

static int by_value(const void *pa, const void *pb) {
  int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
  return a < b ? -1 : a > b;
}

/* Named ranges are few and tell the iterations: they stay as long as they are no flood. */
static bool is_kept(const hn_timeline_store *s, hn_event_class class, int64_t start) {
  return start < s->horizon || (class == HN_EVENT_RANGE && s->ranges < s->most / 4);
}

/* The store is full: keeps the earlier half. */
static void shed(hn_timeline *t, hn_timeline_store *s) {
  int64_t sample[SAMPLES];
  for (size_t i = 0; i < SAMPLES; i++) sample[i] = s->ptr[i * (s->len / SAMPLES)].start;
  qsort(sample, SAMPLES, sizeof *sample, by_value);
  int64_t middle = sample[SAMPLES / 2];
  s->horizon = middle < s->horizon ? middle : sample[0];
  size_t kept = 0, len = s->len;
  s->ranges = 0;
  for (size_t i = 0; i < len; i++) {
    if (!is_kept(s, s->ptr[i].class, s->ptr[i].start)) continue;
    s->ranges += s->ptr[i].class == HN_EVENT_RANGE;
    s->ptr[kept++] = s->ptr[i];
  }
  t->dropped += len - kept;
  s->len = kept;
}

void hn_timeline_add(hn_timeline *t, const hn_event *e) {
  if (t->failed || e->end_ns < e->start_ns || e->start_ns < -TIME_MOST || e->end_ns > TIME_MOST) return;
  bool device = e->class == HN_EVENT_DEVICE;
  hn_timeline_store *s = device ? &t->device : &t->host;
  uint32_t name = name_index(t, e->name);
  if (t->failed) return;
  t->counts[e->class]++;
  if (e->class != HN_EVENT_FLOW) {
    t->totals.ptr[name].count[!device]++;
    t->totals.ptr[name].ns[!device] += (double)(e->end_ns - e->start_ns);
  }
  if (s->len >= s->most) shed(t, s);
  if (!is_kept(s, e->class, e->start_ns)) {
    t->dropped++;
    return;
  }
  hn_timeline_event row = {.start = e->start_ns,
                           .end = e->end_ns,
                           .bytes = e->bytes,
                           .name = name,
                           .correlation = e->correlation,
                           .op = e->op,
                           .launch = e->launch,
                           .lane = (uint16_t)e->lane,
                           .process = find_process(t, e->process),
                           .class = (uint8_t)e->class,
                           .kind = (uint8_t)e->kind,
                           .reference = e->reference,
                           .memory = (uint8_t)(e->source_memory | e->target_memory << 4)};
  if (!hn_vec_push(s, row)) t->failed = true;
  s->ranges += e->class == HN_EVENT_RANGE;
  if (e->lane < t->lanes.len) t->lanes.ptr[e->lane].used = true;
}

uint64_t hn_timeline_count(const hn_timeline *t, hn_event_class class) { return t->counts[class]; }

/* ---- words that all tools share ---- */

bool hn_timeline_waits(const char *function) {
  /* cudaStreamSynchronize, hipDeviceSynchronize_v2, cuCtxSynchronize, cuEventSynchronize ... */
  return strstr(function, "Synchronize") != NULL;
}

hone_memory_kind hn_timeline_memory(const char *word) {
  if (strncasecmp(word, "pageable", 8) == 0) return HONE_MEMORY_PAGEABLE;
  if (strncasecmp(word, "pinned", 6) == 0) return HONE_MEMORY_PINNED;
  if (strncasecmp(word, "managed", 7) == 0 || strncasecmp(word, "unified", 7) == 0)
    return HONE_MEMORY_MANAGED;
  if (strncasecmp(word, "device", 6) == 0 || strncasecmp(word, "array", 5) == 0) return HONE_MEMORY_DEVICE;
  return HONE_MEMORY_UNKNOWN;
}
