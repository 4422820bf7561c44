#include "optimize/match/present.h"

#include "base/str.h"

#include <string.h>

size_t hn_present_find(const hn_present *p, const char *type) {
  for (size_t i = 0; i < p->len; i++)
    if (hn_same_name(p->ptr[i], type)) return i;
  return SIZE_MAX;
}

static bool has(const hn_present *p, const char *name, size_t len) {
  for (size_t i = 0; i < p->len; i++)
    if (*p->ptr[i] == *name && strncmp(p->ptr[i], name, len) == 0 && !p->ptr[i][len]) return true;
  return false;
}

bool hn_present_add(hn_present *p, const hn_graph *g, bool nested) {
  for (const hone_node *n = g->first; n; n = n->next) {
    if (hn_present_find(p, n->op_type) == SIZE_MAX && !hn_vec_push(p, n->op_type)) return false;
    for (uint32_t i = 0; nested && i < n->n_attr; i++)
      if (n->attr[i].type == HONE_ATTR_GRAPH && !hn_present_add(p, n->attr[i].g, true)) return false;
  }
  return true;
}

bool hn_present_any(const hn_present *p, const char *const *types) {
  for (; *types; types++)
    if (hn_present_find(p, *types) != SIZE_MAX) return true;
  return false;
}

/* "Conv|Gemm(%x, ...": one of the names in front of the bracket. Of another domain than ONNX's own: perhaps.
 */
static bool one_is_there(const hn_present *p, const char *at) {
  for (;;) {
    const size_t len = strcspn(at, "|(. :\n");
    if (!len || (at[len] != '|' && at[len] != '(')) return true; /* spelled in another way */
    if (has(p, at, len)) return true;
    if (at[len] == '(') return false;
    at += len + 1;
  }
}

bool hn_spelling_may_match(const hn_present *p, const char *text) {
  while (*text) {
    const size_t len = strcspn(text, "\n");
    const char *made = *text == '%' ? strstr(text, " = ") : NULL;
    if (made && made < text + len && !one_is_there(p, made + 3)) return false;
    text += len + (text[len] == '\n');
  }
  return true;
}
