/* What hone verify found, for documents and exit codes. */
#include "cli/reports/verdict.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>

static json_t *judgement_json(const hone_step_judgement *j) {
  if (!j->kind) return json_null();
  return json_pack("{s:s, s:o, s:o, s:o, s:I, s:b}", "class", j->kind, "terms",
                   j->terms ? json_integer((json_int_t)j->terms) : json_null(), "bound", cli_real(j->bound),
                   "measured", cli_real(j->measured), "element", (json_int_t)j->element, "over", j->over);
}

static json_t *tolerances_json(const hone_verify_result *r) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < r->n_tolerances; i++) {
    const hone_tolerance *t = &r->tolerances[i];
    json_array_append_new(
        list, json_pack("{s:s, s:i, s:o, s:o, s:s, s:s, s:s, s:s}", "class", t->kind, "nodes", (int)t->nodes,
                        "terms", t->terms ? json_integer((json_int_t)t->terms) : json_null(), "share",
                        t->share < 0 ? json_null() : cli_real(t->share), "of", t->of, "formula", t->formula,
                        "source", t->source, "largest", t->largest));
  }
  return list;
}

const char *cli_verdict_name(hone_verdict verdict) {
  return verdict == HONE_VERDICT_SAME        ? "same"
         : verdict == HONE_VERDICT_DIFFERENT ? "different"
                                             : "mistrusted";
}

int cli_verdict_exit(hone_verdict verdict) {
  return verdict == HONE_VERDICT_SAME ? 0 : verdict == HONE_VERDICT_DIFFERENT ? 1 : 5;
}

json_t *cli_verification_json(const hone_verify_result *r) {
  return json_pack(
      "{s:s, s:o, s:o, s:o, s:i, s:i, s:i, s:i, s:i, s:s, s:s, s:o, s:i, s:o, s:o, s:o, s:b, s:o, s:o}",
      "verdict", cli_verdict_name(r->verdict), "max_abs", cli_real(r->max_abs), "max_rel",
      cli_real(r->max_rel), "tolerance", cli_real(r->tolerance), "inputs", (int)r->inputs, "inputs_wanted",
      (int)r->inputs_wanted, "edge_inputs", (int)r->edge_inputs, "edge_inputs_unjudged",
      (int)r->edge_inputs_unjudged, "edge_inputs_wanted", (int)r->edge_inputs_wanted, "reference",
      r->reference, "reason", r->reason, "first_different_node",
      r->first_different_node[0] ? json_string(r->first_different_node) : json_null(), "steps_compared",
      (int)r->steps_compared, "worst_levels", cli_real(r->worst_levels), "judgement",
      judgement_json(&r->judgement), "tolerances", tolerances_json(r), "judged_steps", r->judged_steps,
      "differing", cli_real(r->differing), "astray", cli_real(r->astray));
}
