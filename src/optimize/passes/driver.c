/* Runs the passes to a fixed point. */
#include "base/fault.h"
#include "optimize/match/present.h"
#include "optimize/passes/common/pass.h"
#include "optimize/passes/common/verify.h"
#include "optimize/passes/optimize.h"

#include <fnmatch.h>

enum { MAX_ROUNDS = 16, MAX_PATTERNS = 8 };

/* One name of the list hn_optimize_options.passes. */
typedef struct item {
  char glob[96];
  bool negative;
} item;

/* The item at *at, which moves on to the next; false: the end. Empty ones are passed over. */
static bool next_item(const char **at, item *out) {
  while (*at && **at == ',') ++*at;
  if (!*at || !**at) return false;
  const size_t len = strcspn(*at, ",");
  out->negative = **at == '-';
  snprintf(out->glob, sizeof out->glob, "%.*s", (int)(len - out->negative), *at + out->negative);
  *at += len;
  return true;
}

static bool fits_pass(const hn_listing *passes, const char *glob) {
  for (uint32_t i = 0; i < passes->n; i++)
    if (fnmatch(glob, ((const hn_pass *)passes->unit[i])->name, 0) == 0) return true;
  return false;
}

static bool fits_other(const hn_optimize_options *o, const char *glob) {
  for (const char *const *name = o->others; name && *name; name++)
    if (fnmatch(glob, *name, 0) == 0) return true;
  return false;
}

/* Whether a pass runs, by level and by the list of globs: with positive globs of passes only what they name
 * runs. */
static bool enabled(const hn_listing *passes, const hn_pass *p, const hn_optimize_options *o) {
  const bool on = p->level <= o->level;
  bool any_positive = false, named = false;
  item it;
  for (const char *at = o->passes; next_item(&at, &it);) {
    const bool fits = fnmatch(it.glob, p->name, 0) == 0;
    if (it.negative) {
      if (fits) return false;
    } else {
      any_positive |= fits_pass(passes, it.glob);
      named |= fits && (on || strcmp(it.glob, p->name) == 0);
    }
  }
  return any_positive ? named : on;
}

/* A glob that fits no pass is a typing error, and would silently switch everything off. */
static hone_status check_globs(const hn_listing *passes, const hn_optimize_options *o, hone_error *error) {
  item it;
  for (const char *at = o->passes; next_item(&at, &it);) {
    if (fits_pass(passes, it.glob) || fits_other(o, it.glob)) continue;
    hn_fail(error, HONE_ERROR_USAGE, "no pass%s is called '%s'", o->others ? " or fusion" : "", it.glob);
    hn_str names = {0};
    for (const char *const *name = o->others; name && *name; name++)
      hn_str_printf(&names, "%s%s", names.len ? ", " : "", *name);
    if (names.ptr) hn_error_expected(error, "a graph pass, or one of %s", names.ptr);
    hn_str_free(&names);
    hn_error_hint(error, "hone help passes lists all names");
    return HONE_ERROR_USAGE;
  }
  return HONE_OK;
}

hone_status hn_passes_check(const hn_optimize_options *o, hone_error *error) {
  const hn_listing *passes = hn_registry_take(&hn_passes);
  const hone_status status = check_globs(passes, o, error);
  hn_listing_drop(passes);
  return status;
}

typedef HN_VEC(hone_node *) node_list;

/* The nodes of the main graph and the types of all, between two changes: most passes look at few types, and
 * nodes lie far apart in memory. */
typedef struct roster {
  hn_present present;
  node_list nodes;
  HN_VEC(uint32_t) type; /* of each: its place in `present` */
  bool nested;           /* some have graphs in them */
} roster;

static bool take_roster(roster *r, const hn_graph *g) {
  r->present.len = r->nodes.len = r->type.len = 0;
  r->nested = false;
  for (hone_node *n = g->first; n; n = n->next) {
    size_t t = hn_present_find(&r->present, n->op_type);
    if (t == SIZE_MAX) {
      t = r->present.len;
      if (!hn_vec_push(&r->present, n->op_type)) return false;
    }
    if (!hn_vec_push(&r->nodes, n) || !hn_vec_push(&r->type, (uint32_t)t)) return false;
    for (uint32_t i = 0; i < n->n_attr; i++)
      if (n->attr[i].type == HONE_ATTR_GRAPH) {
        r->nested = true;
        if (!hn_present_add(&r->present, n->attr[i].g, true)) return false;
      }
  }
  return true;
}

static void drop_roster(roster *r) {
  hn_vec_free(&r->present);
  hn_vec_free(&r->nodes);
  hn_vec_free(&r->type);
}

/* Could the pass say anything of a model that has these operators? */
static bool concerns(const hn_pass *p, const hn_present *present) {
  if (p->visit) return !p->roots || hn_present_any(present, p->roots);
  for (const char *const *text = p->patterns; text && *text; text++)
    if (hn_spelling_may_match(present, *text)) return true;
  return p->run != NULL;
}

/* ------------------------------------------------------------------ one pass over one graph */

/* Fills in what the pass said of the record, which was made when the model had `before` nodes, and its graph
 * `in_graph`. */
static void complete(hn_pass_context *ctx, hn_pass_record *k, bool hit, uint32_t before, uint32_t in_graph) {
  char *text = hn_arena_strdup(&ctx->report->arena, ctx->why.text);
  k->reason = text ? text : "";
  k->hit = hit;
  k->enable_level = hit ? -1 : ctx->enable_level;
  k->nodes_before = before;
  k->nodes_after = before - in_graph + ctx->graph->n_nodes;
}

/* Runs the pass where its pattern matched, with a record prepared for the nodes, since a hit takes them out
 * of the graph. */
static hn_pass_result matched(hn_pass_context *ctx, const hone_match *m) {
  const uint32_t before = hn_model_nodes(ctx->model), in_graph = ctx->graph->n_nodes;
  hn_pass_report *r = ctx->report;
  size_t record = r->records.len;
  const hn_arena_mark mark = hn_arena_here(&r->arena);
  hn_pass_record_text(ctx, true, m->node, m->pattern->n_lines, "");
  ctx->why.text[0] = 0;
  ctx->enable_level = -1;
  /* What one match needed is room for the next: else each takes fresh pages of the system. */
  const hn_arena_mark room = hn_arena_here(ctx->scratch);
  hn_pass_result result = ctx->pass->match(ctx, m);
  hn_arena_back(ctx->scratch, room);
  if (record >= r->records.len) { /* the record itself found no memory */
    ctx->changed |= result == HN_PASS_HIT;
    return result;
  }
  if (result == HN_PASS_NONE || result == HN_PASS_FAIL) {
    r->records.len--;
    if (r->records.len == record) hn_arena_back(&r->arena, mark);
    return result;
  }
  complete(ctx, &r->records.ptr[record], result == HN_PASS_HIT, before, in_graph);
  ctx->changed |= result == HN_PASS_HIT;
  return result;
}

/* Runs the pass at a node. Most say nothing, and this goes over every node of every model many times: the
 * record is made behind it, of what the node was. */
static void visited(hn_pass_context *ctx, hone_node *at) {
  const uint32_t before = hn_model_nodes(ctx->model), in_graph = ctx->graph->n_nodes;
  hone_node was = {.name = at->name}, *place = &was;
  hn_pass_report *r = ctx->report;
  const size_t record = r->records.len;
  ctx->why.text[0] = 0;
  ctx->enable_level = -1;
  const hn_pass_result result = ctx->pass->visit(ctx, at);
  if (result == HN_PASS_NONE || result == HN_PASS_FAIL) return;
  ctx->changed |= result == HN_PASS_HIT;
  const size_t said = r->records.len; /* by the pass itself: they come behind */
  hn_pass_record_text(ctx, true, &place, 1, "");
  if (said == r->records.len) return; /* the record found no memory */
  const hn_pass_record own = r->records.ptr[said];
  for (size_t i = said; i > record; i--) r->records.ptr[i] = r->records.ptr[i - 1];
  r->records.ptr[record] = own;
  complete(ctx, &r->records.ptr[record], result == HN_PASS_HIT, before, in_graph);
}

static hn_pass_result match_at(hn_pass_context *ctx, const hn_pattern *patterns, uint32_t n_patterns,
                               hone_node *node) {
  hone_match m, near; /* kilobytes, and most nodes need none of them: neither these nor reasons are cleared */
  hone_reason why, near_why;
  bool have_near = false;
  for (uint32_t i = 0; i < n_patterns; i++) {
    hn_match_result found = hn_pattern_match(&patterns[i], node, &m, &why);
    if (found == HN_MATCH_YES) {
      hn_pass_result result = matched(ctx, &m);
      if (result != HN_PASS_NONE) return result;
    } else if (found == HN_MATCH_NEAR && !have_near) {
      have_near = true;
      near = m;
      near_why = why;
    }
  }
  if (!have_near) return HN_PASS_NONE;
  hn_pass_record_add(ctx, false, near.node, near.pattern->n_lines, "%s", near_why.text);
  return HN_PASS_MISS;
}

/* Whether the pass is asked of the node at all. */
static bool is_root(const hn_pass *p, const hn_pattern *patterns, uint32_t n_patterns, const hone_node *n) {
  for (uint32_t i = 0; i < n_patterns; i++)
    if (hn_pattern_ends_at(&patterns[i], n)) return true;
  for (const char *const *type = p->roots; type && *type; type++)
    if (**type == *n->op_type && strcmp(*type, n->op_type) == 0) return true;
  return p->visit && !p->roots;
}

/* Whether it may be asked of nodes of this type. */
static bool is_root_type(const hn_pass *p, const hn_pattern *patterns, uint32_t n_patterns,
                         const char *type) {
  for (uint32_t i = 0; i < n_patterns; i++) {
    const hn_line *last = &patterns[i].line[patterns[i].n_lines - 1];
    for (uint32_t k = 0; k < last->n_op; k++)
      if (strcmp(last->op[k], type) == 0) return true;
  }
  for (const char *const *root = p->roots; root && *root; root++)
    if (strcmp(*root, type) == 0) return true;
  return p->visit && !p->roots;
}

/* The nodes of a graph that the pass is asked of, in their order. r: of the main graph; NULL: another. */
static bool list_roots(hn_pass_context *ctx, const hn_pattern *patterns, uint32_t n_patterns,
                       const hn_graph *g, const roster *r, node_list *out) {
  const hn_pass *p = ctx->pass;
  bool *wanted = r ? HN_NEW_ARRAY(ctx->scratch, bool, r->present.len) : NULL;
  for (hone_node *n = r ? NULL : g->first; n; n = n->next)
    if (is_root(p, patterns, n_patterns, n) && !hn_vec_push(out, n)) return false;
  if (!r) return true;
  if (!wanted) return false;
  for (size_t t = 0; t < r->present.len; t++)
    wanted[t] = is_root_type(p, patterns, n_patterns, r->present.ptr[t]);
  for (size_t i = 0; i < r->nodes.len; i++)
    if (wanted[r->type.ptr[i]] && is_root(p, patterns, n_patterns, r->nodes.ptr[i]) &&
        !hn_vec_push(out, r->nodes.ptr[i]))
      return false;
  return true;
}

static hone_status run_graph(hn_pass_context *ctx, const hn_pattern *patterns, uint32_t n_patterns,
                             hn_graph *g, const roster *r) {
  const hn_pass *p = ctx->pass;
  ctx->graph = g;
  if (p->run) {
    if (p->run(ctx) == HN_PASS_FAIL) return ctx->status;
  } else {
    node_list nodes = {0};
    if (!list_roots(ctx, patterns, n_patterns, g, r, &nodes)) hn_pass_memory(ctx);
    for (size_t i = 0; i < nodes.len && ctx->status == HONE_OK; i++) {
      hone_node *n = nodes.ptr[i];
      if (!hn_is_linked(n)) continue;
      if (p->visit)
        visited(ctx, n);
      else
        match_at(ctx, patterns, n_patterns, n);
    }
    hn_vec_free(&nodes);
  }
  const bool nested = !r || r->nested;
  for (hone_node *n = nested ? g->first : NULL; n && ctx->status == HONE_OK; n = n->next)
    for (uint32_t i = 0; i < n->n_attr && ctx->status == HONE_OK; i++)
      if (n->attr[i].type == HONE_ATTR_GRAPH) run_graph(ctx, patterns, n_patterns, n->attr[i].g, NULL);
  ctx->graph = g;
  return ctx->status;
}

static hone_status run_pass(hn_pass_context *ctx, const roster *r) {
  hn_pattern *patterns = NULL;
  uint32_t n = 0;
  if (ctx->pass->patterns) {
    patterns = HN_NEW_ARRAY(ctx->scratch, hn_pattern, MAX_PATTERNS);
    if (!patterns) return hn_pass_memory(ctx), ctx->status;
    for (; ctx->pass->patterns[n] && n < MAX_PATTERNS; n++) {
      ctx->status =
          hn_pattern_compile(ctx->pass->name, ctx->pass->patterns[n], ctx->scratch, &patterns[n], ctx->error);
      if (ctx->status != HONE_OK) return ctx->status;
    }
  }
  return run_graph(ctx, patterns, n, ctx->model->graph, r);
}

/* ------------------------------------------------------------------ all passes */

/* Outputs of a nested graph that are values of the graphs around it: an Identity of its own keeps edits
 * local. */
static bool own_outputs(hn_graph *g) {
  for (size_t i = 0; g->parent && i < g->outputs.len; i++) {
    hn_value *v = g->outputs.ptr[i];
    if (v->graph == g && v->producer) continue;
    hn_value *copy = hn_value_create(g, NULL);
    if (!copy) return false;
    copy->desc = v->desc;
    copy->foreign = v->foreign;
    copy->declared = v->declared;
    hone_node *n = hn_node_create(g, NULL, "Identity", "", NULL, &v, 1, &copy, 1);
    if (!n) return false;
    n->op = hn_op_find(g->model->operators, "", "Identity", n->opset, NULL);
    g->outputs.ptr[i] = copy;
    copy->is_output = true;
    bool still = false;
    for (size_t k = 0; k < v->graph->outputs.len; k++) still |= v->graph->outputs.ptr[k] == v;
    v->is_output = still;
  }
  for (hone_node *n = g->first; n; n = n->next)
    for (uint32_t i = 0; i < n->n_attr; i++)
      if (n->attr[i].type == HONE_ATTR_GRAPH && !own_outputs(n->attr[i].g)) return false;
  return true;
}

static uint32_t count_nodes(const hn_graph *g) {
  uint32_t n = g->n_nodes;
  for (const hone_node *k = g->first; k; k = k->next)
    for (uint32_t i = 0; i < k->n_attr; i++)
      if (k->attr[i].type == HONE_ATTR_GRAPH) n += count_nodes(k->attr[i].g);
  return n;
}

/* Near misses of a pass that runs again may have become hits; those of its last run say what is left. */
static void drop_near_misses(hn_pass_report *r, const char *pass) {
  size_t k = 0;
  for (size_t i = 0; i < r->records.len; i++) {
    if (!r->records.ptr[i].hit && r->records.ptr[i].pass == pass) continue;
    if (k < i) r->records.ptr[k] = r->records.ptr[i]; /* as a rule there are none */
    k++;
  }
  r->records.len = k;
}

/* Hits as they came, then the near misses that are left, in the order of the passes. */
static bool near_misses_last(hn_pass_report *r) {
  HN_VEC(hn_pass_record) near = {0};
  bool good = true;
  for (size_t t = 0; t < r->totals.len; t++)
    for (size_t i = 0; i < r->records.len && good; i++)
      if (!r->records.ptr[i].hit && r->records.ptr[i].pass == r->totals.ptr[t].pass)
        good = hn_vec_push(&near, r->records.ptr[i]);
  size_t k = 0;
  for (size_t i = 0; i < r->records.len && good; i++)
    if (r->records.ptr[i].hit) r->records.ptr[k++] = r->records.ptr[i];
  for (size_t i = 0; i < near.len && good; i++) r->records.ptr[k++] = near.ptr[i];
  hn_vec_free(&near);
  return good;
}

/* The fault of every pass, by its name: what it gave readers is the negative of what it should be, or the
 * complement. Passes whose edits are others plant it themselves. */
static void go_wrong(hn_pass_context *ctx) {
  hn_value *v = ctx->given;
  if (!v || !HN_FAULT(ctx->pass->name) || !hn_value_needed(v)) return;
  const hone_dtype d = v->desc.dtype;
  const bool negative = hone_dtype_is_float(d) || d == HONE_DTYPE_I8 || d == HONE_DTYPE_I16 ||
                        d == HONE_DTYPE_I32 || d == HONE_DTYPE_I64,
             bits = d == HONE_DTYPE_U8 || d == HONE_DTYPE_U16 || d == HONE_DTYPE_U32 || d == HONE_DTYPE_U64;
  const char *op = negative ? "Neg" : bits ? "BitwiseNot" : d == HONE_DTYPE_BOOL ? "Not" : NULL;
  if (!op) return;
  int64_t opset;
  ctx->graph = v->graph;
  hone_node *n = hn_make_node(ctx, v->producer ? v->producer->next : v->graph->first, op, &v, 1, &v->desc);
  if (!n) return;
  if (!n->op) n->op = hn_op_newest(ctx->model->operators, "", op, &opset);
  if (hn_value_replace(v, n->out[0])) hn_node_set_input(n, 0, v);
}

static hone_status after_pass(hn_pass_context *ctx, hn_verifier *v) {
#ifdef NDEBUG
  bool check = ctx->options->check_each;
#else
  bool check = true;
#endif
  hone_status status = check ? hn_model_check(ctx->model, ctx->error) : HONE_OK;
  if (status == HONE_OK) status = hn_model_ready(ctx->model, ctx->error);
  if (status == HONE_OK && v) {
    status = hn_verifier_compare(v, ctx->model, ctx->error);
    ctx->report->verified++;
  }
  if (status != HONE_OK) {
    hn_error_where(ctx->error, "after pass %s", ctx->pass->name);
    if (status != HONE_ERROR_MEMORY && status != HONE_ERROR_CANCELLED && status != HONE_ERROR_BUDGET) {
      status = HONE_ERROR_INTERNAL;
      if (ctx->error) ctx->error->status = status;
    }
  }
  return status;
}

/* What a pass did when it last ran. */
typedef struct last_run {
  /* How often the graph had changed when the pass had gone over it without changing anything, or 0: what has
   * not changed since would be gone over for nothing. */
  uint64_t edits;
  bool missed; /* it left near misses in the report */
} last_run;

hone_status hn_optimize(hn_model *model, const hn_optimize_options *options, hn_pass_report *report,
                        hone_error *error) {
  hn_optimize_options o = options ? *options : (hn_optimize_options){.level = 2};
  hn_pass_report own = {0};
  hn_arena scratch = {0};
  hn_verifier *verifier = NULL;
  hn_pass_report *r = report ? report : &own;
  hn_pass_context ctx = {
      .model = model, .graph = model->graph, .options = &o, .scratch = &scratch, .error = error, .report = r};
  ctx.fold.deadline_ns = hn_now_ns() + (uint64_t)((o.fold_seconds > 0 ? o.fold_seconds : 20) * 1e9);
  ctx.fold.cancel = o.cancel;
  /* What is lowered would make the tensor in every run; a file would grow by it. */
  if (!o.fold_tensor_bytes) o.fold_tensor_bytes = (uint64_t)(o.lowered ? 1024 : 256) << 20;
  if (!o.fold_bytes) o.fold_bytes = (uint64_t)1 << 30;
  const hn_listing *passes = hn_registry_take(&hn_passes);
  hone_status status = check_globs(passes, &o, error);
  if (status != HONE_OK) {
    hn_listing_drop(passes);
    return status;
  }
  r->nodes_before = count_nodes(model->graph);
  bool any = false;
  for (uint32_t i = 0; i < passes->n; i++) {
    const hn_pass *p = passes->unit[i];
    if (!enabled(passes, p, &o)) continue;
    any = true;
    if (!hn_vec_push(&r->totals, (hn_pass_total){.pass = p->name, .level = p->level}))
      status = hn_fail(error, HONE_ERROR_MEMORY, "cannot allocate memory for the passes' report");
  }
  if (any && status == HONE_OK && !own_outputs(model->graph))
    status = hn_fail(error, HONE_ERROR_MEMORY, "cannot allocate memory for the optimizer");
  if (any && status == HONE_OK && o.verify_each)
    status = hn_verifier_create(model, o.verify_seed, o.cancel, &verifier, error);
  bool changed = any;
  uint64_t edits = 1, listed = 0;
  roster list = {0}; /* as the graph was after `listed` edits */
  last_run *last = hn_calloc(passes->n + 1, sizeof *last);
  if (!last) status = hn_fail_memory(error, passes->n * sizeof *last, "the optimizer");
  while (changed && status == HONE_OK && r->rounds < MAX_ROUNDS) {
    changed = false;
    r->rounds++;
    for (uint32_t i = 0, t = 0; i < passes->n && status == HONE_OK; i++) {
      ctx.pass = passes->unit[i];
      if (!enabled(passes, ctx.pass, &o)) continue;
      if (o.cancel && atomic_load(o.cancel)) {
        status = hn_fail(error, HONE_ERROR_CANCELLED, "the optimizer was cancelled");
        break;
      }
      if (last[i].edits == edits) {
        t++;
        continue;
      }
      uint64_t start = hn_now_ns();
      if (last[i].missed) drop_near_misses(r, ctx.pass->name);
      last[i].missed = false;
      if (listed != edits) {
        if (!take_roster(&list, model->graph)) {
          status = hn_fail_memory(error, model->graph->n_nodes, "the optimizer");
          break;
        }
        listed = edits;
      }
      if (!concerns(ctx.pass, &list.present)) {
        last[i].edits = edits;
        t++;
        continue;
      }
      size_t first = r->records.len;
      ctx.changed = false, ctx.given = NULL;
      status = run_pass(&ctx, &list);
      if (status == HONE_OK && ctx.changed) go_wrong(&ctx);
      hn_arena_free(&scratch);
      if (status == HONE_OK && ctx.changed) status = after_pass(&ctx, verifier);
      changed |= ctx.changed;
      edits += ctx.changed;
      last[i].edits = ctx.changed ? 0 : edits;
      hn_pass_total *total = &r->totals.ptr[t++];
      for (size_t k = first; k < r->records.len; k++) {
        total->hits += r->records.ptr[k].hit;
        last[i].missed |= !r->records.ptr[k].hit;
      }
      total->seconds += (double)(hn_now_ns() - start) * 1e-9;
    }
  }
  hn_free(last);
  drop_roster(&list);
  if (status == HONE_OK && !near_misses_last(r)) status = hn_fail_memory(error, 0, "the passes' report");
  r->fixed_point = !changed;
  r->nodes_after = count_nodes(model->graph);
  hn_verifier_destroy(verifier);
  hn_listing_drop(passes);
  hn_arena_free(&scratch);
  hn_pass_report_free(&own);
  return status;
}
