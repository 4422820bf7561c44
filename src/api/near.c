/* Near misses of lowering in the form of those of the passes: here they get their words. */
#include "api/api.h"
#include "base/error.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static void name_nodes(const hn_miss *m, char *buf, size_t size) {
  *buf = 0;
  for (uint32_t i = 0; i < m->n_nodes; i++) {
    const size_t at = strlen(buf);
    if (m->node[i]) snprintf(buf + at, size - at, "%s%s", at ? ", " : "", m->node[i]->name);
  }
}

static void put(const hn_miss *m, hone_rewrite *w) {
  *w = (hone_rewrite){.pass = hn_fusion_names[m->fusion],
                      .bytes_saved = hn_miss_bytes(m),
                      .enable_level = m->enable_level ? m->enable_level : -1,
                      .by = m->why == HN_MISS_SLOWER ? HONE_REWRITE_SLOWER : HONE_REWRITE_FUSION};
  name_nodes(m, w->nodes, sizeof w->nodes);
  hn_miss_say(m, w->reason, sizeof w->reason);
}

hone_status hn_export_misses(const hn_plan *p, hone_rewrites *to, hone_error *error) {
  const uint32_t before = to->n;
  const size_t most = before + p->misses.list.len + HN_FUSIONS;
  hone_rewrite *all = hn_realloc(to->record, (most + 1) * sizeof *all);
  if (!all) return hn_fail_memory(error, most * sizeof *all, "the report of rewrites");
  memset(all + before, 0, (most + 1 - before) * sizeof *all);
  to->record = all;
  for (size_t i = 0; i < p->misses.list.len; i++) put(&p->misses.list.ptr[i], &all[to->n++]);
  for (uint32_t f = 0; f < HN_FUSIONS; f++)
    if (p->misses.more[f]) {
      all[to->n] = (hone_rewrite){.pass = hn_fusion_names[f], .enable_level = -1, .by = HONE_REWRITE_FUSION};
      snprintf(all[to->n++].reason, sizeof all->reason, "... and %u more", p->misses.more[f]);
    }
  return HONE_OK;
}
