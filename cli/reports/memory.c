#include "cli/reports/memory.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"

#include <stdio.h>
#include <string.h>

static json_t *purposes_json(const uint64_t *bytes) {
  json_t *o = json_object();
  for (int i = 0; i < HONE_MEMORY_PURPOSES; i++)
    json_object_set_new(o, hone_memory_purpose_name((hone_memory_purpose)i),
                        json_integer((json_int_t)bytes[i]));
  return o;
}

static json_t *owners_json(const hone_memory_pool *m) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < m->n_owners; i++) {
    const hone_memory_owner *o = &m->owner[i];
    json_array_append_new(
        list,
        json_pack("{s:o, s:I, s:I, s:I, s:I, s:o, s:o}", "name", o->name[0] ? cli_text(o->name) : json_null(),
                  "blocks", (json_int_t)o->blocks, "used_bytes", (json_int_t)o->used, "reserved_bytes",
                  (json_int_t)o->reserved, "high_water_bytes", (json_int_t)o->high_water, "fragmentation",
                  cli_real(o->fragmentation), "used_for_bytes", purposes_json(o->used_for)));
  }
  return list;
}

static json_t *classes_json(const hone_memory_pool *m) {
  json_t *list = json_array();
  for (int i = 0; i < HONE_MEMORY_CLASSES; i++) {
    const hone_memory_class *c = &m->size_class[i];
    json_array_append_new(
        list, json_pack("{s:o, s:I, s:I, s:I, s:I}", "block_bytes",
                        c->block_bytes ? json_integer((json_int_t)c->block_bytes) : json_null(),
                        "used_blocks", (json_int_t)c->used_blocks, "free_blocks", (json_int_t)c->free_blocks,
                        "used_bytes", (json_int_t)c->used_bytes, "free_bytes", (json_int_t)c->free_bytes));
  }
  return list;
}

static json_t *pool_json(const hone_memory_pool *m) {
  return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:o, s:o}", "name", m->name,
                   "used_bytes", (json_int_t)m->used, "reserved_bytes", (json_int_t)m->reserved,
                   "high_water_bytes", (json_int_t)m->high_water, "reserved_high_water_bytes",
                   (json_int_t)m->reserved_high_water, "free_bytes", (json_int_t)m->free_bytes,
                   "largest_free_bytes", (json_int_t)m->largest_free, "fragmentation",
                   cli_real(m->fragmentation), "taken", (json_int_t)m->taken, "given", (json_int_t)m->given,
                   "reclaims", (json_int_t)m->reclaims, "classes", classes_json(m), "owners", owners_json(m));
}

/* Null: not read, or the device's memory is the host's. */
static json_t *known(uint64_t bytes) { return bytes ? json_integer((json_int_t)bytes) : json_null(); }

json_t *memory_json(const hone_memory_stats *s) {
  json_t *pools = json_array();
  for (uint32_t i = 0; i < s->n_pools; i++) json_array_append_new(pools, pool_json(&s->pool[i]));
  return json_pack("{s:o, s:o, s:o, s:o, s:o}", "pools", pools, "device_total_bytes", known(s->device_total),
                   "device_free_bytes", known(s->device_free), "host_rss_bytes", known(s->host_rss),
                   "host_rss_peak_bytes", known(s->host_rss_peak));
}

static void row(const char *name, double used, double reserved, double high, double fragmentation) {
  char b[3][24];
  cli_print("%-28.28s %12s %12s %12s %7.1f %%\n", name, cli_bytes(used, b[0]), cli_bytes(reserved, b[1]),
            cli_bytes(high, b[2]), 100 * fragmentation);
}

static void owner_text(const hone_memory_owner *o) {
  char name[80], bytes[24];
  snprintf(name, sizeof name, "  %s", o->name[0] ? o->name : "(no model)");
  row(name, (double)o->used, (double)o->reserved, (double)o->high_water, o->fragmentation);
  const char *before = "    ";
  for (int i = 0; i < HONE_MEMORY_PURPOSES; i++) {
    if (!o->used_for[i]) continue;
    cli_print("%s%s %s", before, hone_memory_purpose_name((hone_memory_purpose)i),
              cli_bytes((double)o->used_for[i], bytes));
    before = ", ";
  }
  if (o->used) cli_print("\n");
}

static void classes_text(const hone_memory_pool *m) {
  char size[24];
  cli_print("  blocks held and free:");
  for (int i = 0; i < HONE_MEMORY_CLASSES; i++) {
    const hone_memory_class *c = &m->size_class[i];
    if (c->block_bytes)
      snprintf(size, sizeof size, "%llu KiB", (unsigned long long)c->block_bytes >> 10);
    else
      snprintf(size, sizeof size, "larger");
    cli_print("%s %s %llu + %llu", i ? "," : "", size, (unsigned long long)c->used_blocks,
              (unsigned long long)c->free_blocks);
  }
  cli_print("\n");
}

void memory_text(const hone_memory_stats *s) {
  char a[24], b[24];
  cli_print("%-28s %12s %12s %12s %9s\n", "memory", "used", "reserved", "high-water", "fragments");
  for (uint32_t i = 0; i < s->n_pools; i++) {
    const hone_memory_pool *m = &s->pool[i];
    row(m->name, (double)m->used, (double)m->reserved, (double)m->high_water, m->fragmentation);
    for (uint32_t k = 0; k < m->n_owners; k++) owner_text(&m->owner[k]);
    classes_text(m);
    cli_print("  from the system: taken %llu time%s, given back %llu time%s\n", (unsigned long long)m->taken,
              cli_s(m->taken), (unsigned long long)m->given, cli_s(m->given));
  }
  if (s->device_total)
    cli_print("device       %s of %s free, by its driver\n", cli_bytes((double)s->device_free, a),
              cli_bytes((double)s->device_total, b));
  if (s->host_rss)
    cli_print("process      %s resident, %s at peak\n", cli_bytes((double)s->host_rss, a),
              cli_bytes((double)s->host_rss_peak, b));
}
