/* A gate between two models is one between two versions of one network: what goes in and what comes out has
 * to be the same, or the times say nothing of each other. */
#include "base/error.h"

#include <hone/measure.h>

#include <stdio.h>
#include <string.h>

typedef struct network {
  const char *name;
  const hone_model *ports;
} network;

typedef bool (*port_of)(const hone_model *, uint32_t, hone_port *);

static bool find_port(const hone_model *model, port_of get, const char *name, hone_port *port) {
  for (uint32_t i = 0; get(model, i, port); i++)
    if (strcmp(port->name, name) == 0) return true;
  return false;
}

/* What is not known before a run fits everything. */
static bool fits(const hone_tensor_desc *a, const hone_tensor_desc *b) {
  bool same = a->dtype == b->dtype && (a->rank == b->rank || a->rank < 0 || b->rank < 0);
  for (int32_t k = 0; same && k < a->rank && k < b->rank; k++)
    same = a->dim[k] == b->dim[k] || a->dim[k] < 0 || b->dim[k] < 0;
  return same;
}

static hone_status refuse(const network *a, const char *kind, const char *name, const char *in_a,
                          const char *in_b, hone_error *error) {
  hn_fail(error, HONE_ERROR_INPUT,
          "these are two different networks: %s '%.80s' is %s in the baseline and %s in the candidate", kind,
          name, in_a, in_b);
  hn_error_where(error, "%.200s", a->name);
  return HONE_ERROR_INPUT;
}

/* The first of a's inputs (or outputs) that b has not, or has otherwise. An input with a value of its own is
 * none that anybody has to feed. */
static hone_status compare_ports(const network *a, const network *b, port_of get, const char *kind,
                                 bool backwards, hone_error *error) {
  hone_port mine, theirs;
  for (uint32_t i = 0; get(a->ports, i, &mine); i++) {
    char text[2][128];
    if (mine.optional) continue;
    hone_desc_format(&mine.desc, text[0], sizeof text[0]);
    const bool found = find_port(b->ports, get, mine.name, &theirs);
    if (found && fits(&mine.desc, &theirs.desc)) continue;
    if (found)
      hone_desc_format(&theirs.desc, text[1], sizeof text[1]);
    else
      snprintf(text[1], sizeof text[1], "missing");
    return backwards ? refuse(b, kind, mine.name, text[1], text[0], error)
                     : refuse(a, kind, mine.name, text[0], text[1], error);
  }
  return HONE_OK;
}

hone_status hone_same_ports(const hone_model *a_model, const char *a_name, const hone_model *b_model,
                            const char *b_name, hone_error *error) {
  if (!a_model || !b_model) return hn_fail(error, HONE_ERROR_USAGE, "hone_same_ports needs two models");
  const network a = {a_name ? a_name : "", a_model}, b = {b_name ? b_name : "", b_model};
  static const struct {
    port_of get;
    const char *kind;
  } sides[] = {{hone_model_input, "input"}, {hone_model_output, "output"}};
  hone_status status = HONE_OK;
  for (size_t i = 0; i < 2 && status == HONE_OK; i++) {
    status = compare_ports(&a, &b, sides[i].get, sides[i].kind, false, error);
    if (status == HONE_OK) status = compare_ports(&b, &a, sides[i].get, sides[i].kind, true, error);
  }
  return status;
}
