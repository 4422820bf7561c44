/* Joining host and device events, and finding the iterations. */
#include "insight/import/common/timeline_store.h"

#include "base/error.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- order ---- */

static int host_order(const void *pa, const void *pb) {
  const hn_timeline_event *a = pa, *b = pb;
  if (a->lane != b->lane) return a->lane < b->lane ? -1 : 1;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  if (a->end != b->end) return a->end > b->end ? -1 : 1; /* the outer one first */
  if (a->class != b->class) {
    if (a->class == HN_EVENT_RANGE || b->class == HN_EVENT_RANGE) return a->class == HN_EVENT_RANGE ? -1 : 1;
    return a->class < b->class ? -1 : 1;
  }
  return 0;
}

static int device_order(const void *pa, const void *pb) {
  const hn_timeline_event *a = pa, *b = pb;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  if (a->end != b->end) return a->end < b->end ? -1 : 1;
  return a->lane < b->lane ? -1 : a->lane > b->lane;
}

/* ---- which operator is around a host event ---- */

enum { SEARCH_MOST = 64 }; /* ranges that cross are looked through that deep */

static bool find_parents(hn_timeline *t) {
  HN_VEC(int32_t) stack = {0};
  const hn_timeline_event *e = t->host.ptr;
  bool ok = true;
  for (size_t i = 0; i < t->host.len && ok; i++) {
    while (stack.len) {
      const hn_timeline_event *top = &e[stack.ptr[stack.len - 1]];
      if (top->lane == e[i].lane && top->end > e[i].start) break;
      stack.len--;
    }
    t->host_parent[i] = HN_NO_EVENT;
    for (size_t k = 0; k < stack.len && k < SEARCH_MOST; k++) {
      int32_t candidate = stack.ptr[stack.len - 1 - k];
      if (e[candidate].end < e[i].end) continue;
      t->host_parent[i] = candidate;
      break;
    }
    if (e[i].class == HN_EVENT_OP || e[i].class == HN_EVENT_RANGE) ok = hn_vec_push(&stack, (int32_t)i);
  }
  hn_vec_free(&stack);
  return ok;
}

/* ---- numbers -> host events ---- */

typedef struct index_slot {
  uint64_t key1; /* key + 1; 0: free */
  int32_t event;
} index_slot;

typedef struct event_index {
  index_slot *slots;
  size_t mask;
} event_index;

static bool index_open(event_index *x, size_t most) {
  size_t n = 16;
  while (n < 2 * most + 1) n *= 2;
  x->slots = hn_calloc(n, sizeof *x->slots);
  x->mask = n - 1;
  return x->slots != NULL;
}

static index_slot *index_at(const event_index *x, uint64_t key) {
  size_t at = hn_hash(&key, sizeof key, 0) & x->mask;
  while (x->slots[at].key1 && x->slots[at].key1 != key + 1) at = (at + 1) & x->mask;
  return &x->slots[at];
}

static int32_t index_get(const event_index *x, uint64_t key) {
  const index_slot *s = index_at(x, key);
  return s->key1 ? s->event : HN_NO_EVENT;
}

static uint64_t correlation_key(const hn_timeline_event *e) {
  return (uint64_t)e->process << 32 | e->correlation;
}

/* Calls by their correlation number, and operators by their own. */
static bool index_host(const hn_timeline *t, event_index *calls, event_index *ops) {
  size_t call_count = 0, op_count = 0;
  const hn_timeline_event *e = t->host.ptr;
  for (size_t i = 0; i < t->host.len; i++) {
    call_count += (e[i].class == HN_EVENT_CALL || e[i].class == HN_EVENT_FLOW) && e[i].correlation;
    op_count += e[i].class == HN_EVENT_OP && e[i].op;
  }
  if (!index_open(calls, call_count) || !index_open(ops, op_count)) return false;
  for (size_t i = 0; i < t->host.len; i++) {
    bool call = e[i].class == HN_EVENT_CALL || e[i].class == HN_EVENT_FLOW;
    if (call && e[i].correlation) {
      index_slot *s = index_at(calls, correlation_key(&e[i]));
      if (s->key1 && (e[i].class == HN_EVENT_FLOW || e[s->event].class == HN_EVENT_CALL)) continue;
      *s = (index_slot){correlation_key(&e[i]) + 1, (int32_t)i};
    } else if (e[i].class == HN_EVENT_OP && e[i].op) {
      index_slot *s = index_at(ops, e[i].op);
      if (!s->key1) *s = (index_slot){(uint64_t)e[i].op + 1, (int32_t)i};
    }
  }
  return true;
}

static int32_t op_around(const hn_timeline *t, int32_t event) {
  int32_t range = HN_NO_EVENT;
  for (int32_t i = t->host_parent[event]; i != HN_NO_EVENT; i = t->host_parent[i]) {
    if (t->host.ptr[i].class == HN_EVENT_OP) return i;
    if (range == HN_NO_EVENT) range = i;
  }
  return range;
}

static bool join_device(hn_timeline *t) {
  event_index calls = {0}, ops = {0};
  /* What the name's last launch belonged to: for work whose own launch is not known. */
  int32_t *of_name = hn_malloc((t->names.len + 1) * sizeof *of_name);
  bool ok = of_name && index_host(t, &calls, &ops);
  for (size_t i = 0; ok && i < t->names.len; i++) of_name[i] = HN_NO_EVENT;
  for (size_t i = 0; ok && i < t->device.len; i++) {
    const hn_timeline_event *d = &t->device.ptr[i], *host = t->host.ptr;
    int32_t call = d->correlation ? index_get(&calls, correlation_key(d)) : HN_NO_EVENT;
    int32_t op = d->op ? index_get(&ops, d->op) : HN_NO_EVENT;
    /* Old tools write the correlation number here, which may by chance be an operator's. */
    if (op != HN_NO_EVENT && call != HN_NO_EVENT &&
        (host[call].start < host[op].start || host[call].start > host[op].end))
      op = HN_NO_EVENT;
    if (op == HN_NO_EVENT && call != HN_NO_EVENT) op = op_around(t, call);
    if (op == HN_NO_EVENT && call == HN_NO_EVENT) op = of_name[d->name];
    if (op != HN_NO_EVENT) of_name[d->name] = op;
    t->started_by[i] = call;
    t->device_op[i] = op;
  }
  hn_free(of_name);
  hn_free(calls.slots);
  hn_free(ops.slots);
  return ok;
}

/* ---- iterations ---- */

/* A named range that might be an iteration. */
typedef struct mark {
  uint64_t group; /* hash of what it is called, numbers left out */
  int64_t start, end;
  uint32_t name;
  uint8_t rank; /* how much the name speaks for an iteration: 3 says so, 2 sounds so, 1 does not */
} mark;

/* Work by the time at which the host started it. */
typedef struct piece {
  int64_t at;
  double before; /* time of all earlier pieces; of the one behind the last: of all */
} piece;

static int mark_order(const void *pa, const void *pb) {
  const mark *a = pa, *b = pb;
  if (a->group != b->group) return a->group < b->group ? -1 : 1;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  return a->end > b->end ? -1 : a->end < b->end;
}

static int piece_order(const void *pa, const void *pb) {
  const piece *a = pa, *b = pb;
  return a->at < b->at ? -1 : a->at > b->at;
}

static int rank_of(const char *name) {
  static const char *const words[] = {"iter",    "step", "batch", "infer",   "forward", "enqueue",
                                      "execute", "run",  "frame", "request", "predict"};
  if (strncmp(name, "ProfilerStep", 12) == 0) return 3;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcasestr(name, words[i])) return 2;
  return 1;
}

static uint64_t group_of(const char *name, bool numbered) {
  char buf[256];
  size_t n = 0;
  for (const char *p = name; *p && n + 1 < sizeof buf; p++) {
    if (numbered && isdigit((unsigned char)*p)) {
      while (isdigit((unsigned char)p[1])) p++;
      buf[n++] = '#';
    } else
      buf[n++] = *p;
  }
  return hn_hash(buf, n, 0);
}

static int64_t launch_time(const hn_timeline *t, size_t device) {
  int32_t call = t->started_by[device];
  return call == HN_NO_EVENT ? t->device.ptr[device].start : t->host.ptr[call].start;
}

/* Sorted by time, with one more behind the last; NULL when out of memory. */
static piece *list_work(const hn_timeline *t, size_t *count) {
  bool device = t->device.len > 0;
  size_t most = device ? t->device.len : t->host.len, n = 0;
  piece *work = hn_malloc((most + 1) * sizeof *work);
  if (!work) return NULL;
  for (size_t i = 0; i < most; i++) {
    const hn_timeline_event *e = device ? &t->device.ptr[i] : &t->host.ptr[i];
    int32_t parent = device ? HN_NO_EVENT : t->host_parent[i];
    bool inner = parent != HN_NO_EVENT && t->host.ptr[parent].class == HN_EVENT_OP;
    if (device ? e->kind == HONE_SPAN_SYNC : e->class != HN_EVENT_OP || inner) continue;
    work[n++] = (piece){device ? launch_time(t, i) : e->start, (double)(e->end - e->start)};
  }
  if (n) qsort(work, n, sizeof *work, piece_order);
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    double ns = work[i].before;
    work[i].before = sum;
    sum += ns;
  }
  work[n] = (piece){INT64_MAX, sum};
  *count = n;
  return work;
}

static double work_before(const piece *work, size_t n, int64_t time) {
  size_t low = 0, high = n;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (work[middle].at < time)
      low = middle + 1;
    else
      high = middle;
  }
  return work[low].before;
}

/* Ranges inside an earlier one of the group do not count; ranges that overlap are no sequence of iterations.
 * Moves those that count to the front and returns how many. */
static size_t keep_sequence(mark *m, size_t n) {
  size_t kept = 0;
  for (size_t i = 0; i < n; i++) {
    if (kept && m[i].end <= m[kept - 1].end) continue;
    if (kept && m[i].start < m[kept - 1].end) return 0;
    if (m[i].end > m[i].start) m[kept++] = m[i];
  }
  return kept;
}

/* The group of ranges that is most likely one range an iteration. */
static size_t best_group(const piece *work, size_t work_count, mark *marks, size_t n, mark **best) {
  double best_score = 0, all = work[work_count].before;
  size_t best_count = 0;
  for (size_t i = 0, end; i < n; i = end) {
    for (end = i; end < n && marks[end].group == marks[i].group; end++) continue;
    int rank = marks[i].rank;
    size_t count = keep_sequence(marks + i, end - i);
    if (!count || (rank < 3 && count < 2)) continue;
    double covered = 0, span = 0;
    for (size_t k = i; k < i + count; k++) {
      covered += work_before(work, work_count, marks[k].end) - work_before(work, work_count, marks[k].start);
      span += (double)(marks[k].end - marks[k].start);
    }
    double share = all > 0 ? covered / all : 0;
    if ((rank == 2 && share < 0.5) || (rank == 1 && share < 0.95)) continue;
    /* Rank, then what is covered in percent, then the longer ranges: those around the others. */
    double extent = (double)(marks[i + count - 1].end - marks[i].start);
    double score = rank * 1000 + (double)(int)(100 * share) + (extent > 0 ? 0.9 * span / extent : 0);
    if (score <= best_score) continue;
    best_score = score;
    *best = marks + i;
    best_count = count;
  }
  return best_count;
}

/* The host runs ahead of the device: then what counts is when the device did the work of each range. Starts
 * and ends become those of the device; false when that makes no sequence. */
static bool follow_device(const hn_timeline *t, hn_timeline_window *w, size_t n) {
  hn_timeline_window *on_device = hn_malloc(n * sizeof *on_device);
  bool ok = on_device != NULL, late = false;
  for (size_t i = 0; ok && i < n; i++) on_device[i] = (hn_timeline_window){INT64_MAX, INT64_MIN, w[i].name};
  for (size_t i = 0; ok && i < t->device.len; i++) {
    if (t->device.ptr[i].kind == HONE_SPAN_SYNC) continue;
    int64_t at = launch_time(t, i);
    size_t low = 0, high = n; /* the last window that starts at or before */
    while (low < high) {
      size_t middle = (low + high) / 2;
      if (w[middle].start <= at)
        low = middle + 1;
      else
        high = middle;
    }
    if (!low || at >= w[low - 1].end) continue;
    hn_timeline_window *d = &on_device[low - 1];
    if (t->device.ptr[i].start < d->start) d->start = t->device.ptr[i].start;
    if (t->device.ptr[i].end > d->end) d->end = t->device.ptr[i].end;
  }
  for (size_t i = 0; ok && i < n; i++) {
    ok = on_device[i].start < on_device[i].end && (i == 0 || on_device[i - 1].start < on_device[i].start);
    late = late || on_device[i].end > w[i].end + (w[i].end - w[i].start) / 50;
  }
  ok = ok && late;
  for (size_t i = 0; ok && i < n; i++) {
    /* Iterations that follow each other without a pause of the host do so on the device, too. */
    bool at_once = i + 1 < n && w[i + 1].start - w[i].end <= (w[i].end - w[i].start) / 100;
    w[i] = on_device[i];
    if (i + 1 < n && (at_once || w[i].end > on_device[i + 1].start)) w[i].end = on_device[i + 1].start;
  }
  hn_free(on_device);
  return ok;
}

static bool find_windows(hn_timeline *t) {
  size_t ranges = 0, work_count = 0, n = 0;
  for (size_t i = 0; i < t->host.len; i++) ranges += t->host.ptr[i].class == HN_EVENT_RANGE;
  if (!ranges) return true;
  mark *marks = hn_malloc(ranges * sizeof *marks), *best = NULL;
  piece *work = list_work(t, &work_count);
  bool ok = marks && work;
  for (size_t i = 0; ok && i < t->host.len; i++) {
    const hn_timeline_event *e = &t->host.ptr[i];
    if (e->class != HN_EVENT_RANGE) continue;
    const char *name = t->names.ptr[e->name];
    int rank = rank_of(name);
    marks[n++] = (mark){group_of(name, rank > 1), e->start, e->end, e->name, (uint8_t)rank};
  }
  size_t count = 0;
  if (ok) {
    qsort(marks, n, sizeof *marks, mark_order);
    count = best_group(work, work_count, marks, n, &best);
    ok = hn_vec_reserve(&t->windows, count + 1);
  }
  for (size_t i = 0; ok && count && i < t->names.len; i++)
    t->is_mark[i] = group_of(t->names.ptr[i], best->rank > 1) == best->group;
  for (size_t i = 0; ok && i < count; i++)
    t->windows.ptr[t->windows.len++] = (hn_timeline_window){best[i].start, best[i].end, best[i].name};
  if (ok && count && t->device.len) follow_device(t, t->windows.ptr, count);
  hn_free(marks);
  hn_free(work);
  return ok;
}

hone_status hn_timeline_join(hn_timeline *t, hone_error *error) {
  if (t->host.len) qsort(t->host.ptr, t->host.len, sizeof *t->host.ptr, host_order);
  if (t->device.len) qsort(t->device.ptr, t->device.len, sizeof *t->device.ptr, device_order);
  t->host_parent = hn_malloc((t->host.len + 1) * sizeof *t->host_parent);
  t->started_by = hn_malloc((t->device.len + 1) * sizeof *t->started_by);
  t->device_op = hn_malloc((t->device.len + 1) * sizeof *t->device_op);
  t->is_mark = hn_calloc(t->names.len + 1, sizeof *t->is_mark);
  if (!t->host_parent || !t->started_by || !t->device_op || !t->is_mark || !find_parents(t) ||
      !join_device(t) || !find_windows(t))
    return hn_fail_memory(error, t->host.len * sizeof *t->host.ptr, "joining the events of a trace");
  return HONE_OK;
}
