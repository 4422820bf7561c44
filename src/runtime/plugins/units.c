#include "runtime/plugins/units.h"

#include "base/error.h"
#include "model/operators.h"
#include "optimize/passes/optimize.h"
#include "runtime/devices.h"

#include <string.h>

/* What lists of descriptors have in common. */
typedef struct form {
  const char *noun;
  size_t least, whole; /* bytes */
  const char *(*name)(const void *desc);
} form;

/* Every descriptor begins so. */
typedef struct head {
  uint32_t struct_size, abi;
} head;

static const char *op_name(const void *d) { return ((const hone_op_desc *)d)->op_type; }
static const char *tactic_name(const void *d) { return ((const hone_tactic_desc *)d)->name; }
static const char *pattern_name(const void *d) { return ((const hone_pattern_desc *)d)->name; }

static const form ops = {"operator", HN_UP_TO(hone_op_desc, float_form), sizeof(hone_op_desc), op_name},
                  tactics = {"tactic", HN_UP_TO(hone_tactic_desc, work), sizeof(hone_tactic_desc),
                             tactic_name},
                  patterns = {"pattern", HN_UP_TO(hone_pattern_desc, attrs), sizeof(hone_pattern_desc),
                              pattern_name};

/* A whole descriptor from one of any length. What a newer hone would read behind the end must be zero. */
static hone_status copy_desc(const form *f, const void *desc, void *to, hone_error *error) {
  const head *h = desc;
  if (!desc)
    return hn_fail(error, HONE_ERROR_INPUT, "a list of the plugin has no %s where it counts one", f->noun);
  if (h->abi != HONE_PLUGIN_ABI || h->struct_size < f->least) /* too old for its name to be read */
    return hn_check_desc(f->noun, NULL, h->struct_size, h->abi, f->least, error);
  memset(to, 0, f->whole);
  memcpy(to, desc, h->struct_size < f->whole ? h->struct_size : f->whole);
  ((head *)to)->struct_size = (uint32_t)f->whole;
  for (size_t i = f->whole; i < h->struct_size; i++)
    if (((const char *)desc)[i]) {
      hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s %.80s uses members of a newer hone", f->noun,
              f->name(to) ? f->name(to) : "?");
      hn_error_hint(error, "compile it with the headers of this hone, or get a newer hone");
      return HONE_ERROR_UNSUPPORTED;
    }
  return HONE_OK;
}

/* Descriptor i of all lists, one behind the other. */
static const void *desc_at(const hone_plugin *p, uint32_t i, const form **f) {
  if (i < p->n_ops) return *f = &ops, p->op[i];
  i -= p->n_ops;
  if (i < p->n_tactics) return *f = &tactics, p->tactic[i];
  return *f = &patterns, p->pattern[i - p->n_tactics];
}

static uint32_t count(const hone_plugin *p) { return p->n_ops + p->n_tactics + p->n_patterns; }

/* NULL: the device is not here, and the unit is no use. */
static hn_registry *registry_of(const form *f, const void *copy) {
  if (f == &ops) return &hn_operators;
  if (f == &patterns) return hn_pattern_registry();
  return hn_tactic_registry(((const hone_tactic_desc *)copy)->device);
}

/* Descriptors of every kind fit in. */
typedef union any {
  head head;
  hone_op_desc op;
  hone_tactic_desc tactic;
  hone_pattern_desc pattern;
} any;

hone_status hn_units_check(const hone_plugin *p, hone_error *error) {
  for (uint32_t i = 0; i < count(p); i++) {
    const form *f;
    any copy;
    const void *desc = desc_at(p, i, &f);
    hone_status status = copy_desc(f, desc, &copy, error);
    hn_registry *r = status == HONE_OK ? registry_of(f, &copy) : NULL;
    if (r && r->kind->check) status = r->kind->check(&copy, error);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}

/* Does "Swish" or "domain.Swish" mean the anchor "domain.Swish"? */
static bool means(const char *name, const char *anchor) {
  if (!anchor) return false;
  const char *dot = strrchr(anchor, '.');
  return strcmp(name, anchor) == 0 || (dot && strcmp(name, dot + 1) == 0);
}

bool hn_units_have(const hone_plugin *p, const char *name) {
  for (uint32_t i = 0; i < p->n_ops; i++) {
    const hone_op_desc *d = p->op[i];
    const size_t n = strlen(d->domain);
    if (strcmp(name, d->op_type) == 0) return true;
    if (n && strncmp(name, d->domain, n) == 0 && name[n] == '.' && strcmp(name + n + 1, d->op_type) == 0)
      return true;
  }
  for (uint32_t i = 0; i < p->n_tactics; i++)
    if (means(name, p->tactic[i]->anchor)) return true;
  for (uint32_t i = 0; i < p->n_patterns; i++)
    if (means(name, p->pattern[i]->name)) return true;
  return false;
}

static bool is_off(const form *f, const any *copy, const char *const *off, uint32_t n_off) {
  const char *anchor = f == &tactics ? copy->tactic.anchor : f == &patterns ? copy->pattern.name : NULL;
  bool found = false;
  for (uint32_t k = 0; k < n_off; k++) found = found || means(off[k], anchor);
  return found;
}

/* Frees the copies; when nothing of hone runs any more. */
static void free_units(hn_units *u) {
  for (uint32_t i = 0; i < u->n; i++) hn_free(u->entry[i].copy);
  hn_free(u->entry);
  *u = (hn_units){0};
}

hone_status hn_units_add(const hone_plugin *p, const char *const *off, uint32_t n_off, hn_units *out,
                         hone_error *error) {
  *out = (hn_units){.entry = hn_calloc(count(p) + 1, sizeof *out->entry)};
  hone_status status =
      out->entry ? HONE_OK : hn_fail_memory(error, count(p) * sizeof *out->entry, "a plugin");
  for (uint32_t i = 0; i < count(p) && status == HONE_OK; i++) {
    const form *f;
    any copy;
    const void *desc = desc_at(p, i, &f);
    status = copy_desc(f, desc, &copy, error);
    hn_registry *r = status == HONE_OK && !is_off(f, &copy, off, n_off) ? registry_of(f, &copy) : NULL;
    if (!r) continue;
    void *kept = hn_malloc(f->whole);
    if (!kept) {
      status = hn_fail_memory(error, f->whole, "a plugin");
      break;
    }
    memcpy(kept, &copy, f->whole);
    out->entry[out->n++] = (struct hn_unit_entry){r, kept};
    status = hn_registry_add(r, (const void *[]){kept}, 1, error);
    if (status == HONE_OK) continue;
    out->n--;
    hn_free(kept);
  }
  if (status == HONE_OK) return HONE_OK;
  hn_units_remove(out);
  free_units(out);
  return status;
}

void hn_units_remove(hn_units *u) {
  hone_error ignored = {0};
  for (uint32_t i = u->n; i-- > 0;)
    (void)hn_registry_remove(u->entry[i].registry, (const void *[]){u->entry[i].copy}, 1, &ignored);
}
