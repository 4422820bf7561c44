/* Sequences and optionals as a program uses them: given, made, changed, returned; and all that may be wrong
 * with them. Every model runs by the references and at levels 0 to 2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "temporary.h"

#include <hone/data.h>
#include <hone/file.h>
#include <hone/memory.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REFERENCE = -1, LEVELS = 3 };

typedef struct session {
  hone_model *model;
  hone_engine *engine;
  hone_plan *plan;
  hone_context *context;
} session;

static void end(session *s) {
  hone_context_destroy(s->context);
  hone_plan_destroy(s->plan);
  hone_engine_destroy(s->engine);
  hone_model_release(s->model);
  *s = (session){0};
}

static hone_status begin(session *s, const char *text, int level, hone_error *e) {
  *s = (session){0};
  hone_status status = hone_model_parse(text, strlen(text), &s->model, e);
  if (status == HONE_OK)
    status = hone_engine_create(&(hone_engine_options){.threads = 1, .tuning = "off"}, &s->engine, e);
  if (status == HONE_OK)
    status = hone_plan_create(
        s->engine, s->model,
        &(hone_plan_options){.level = level == REFERENCE ? 0 : level, .reference = level == REFERENCE},
        &s->plan, e);
  if (status == HONE_OK) status = hone_context_create(s->plan, &s->context, e);
  return status;
}

static void open_or_fail(session *s, const char *text, int level) {
  hone_error e = {0};
  char said[512];
  if (begin(s, text, level, &e) != HONE_OK) fail_msg("%s", (hone_error_format(&e, said, sizeof said), said));
}

static hone_tensor vector(float *data, int64_t n) {
  return (hone_tensor){hone_desc(HONE_DTYPE_F32, 1, &n), data};
}
static hone_tensor whole(int64_t *data) { return (hone_tensor){hone_desc(HONE_DTYPE_I64, 0, NULL), data}; }
static hone_tensor sequence(hone_items *items) {
  return (hone_tensor){hone_desc(HONE_SEQUENCE_OF(HONE_DTYPE_F32), 0, NULL), items};
}
static hone_tensor optional(hone_dtype inner, hone_items *items) {
  return (hone_tensor){hone_desc(HONE_OPTIONAL_OF(inner), 0, NULL), items};
}

static void is_vector(const hone_tensor *t, int64_t n, const float *want) {
  assert_int_equal(t->desc.dtype, HONE_DTYPE_F32);
  assert_int_equal(t->desc.rank, 1);
  assert_int_equal(t->desc.dim[0], n);
  assert_memory_equal(t->data, want, (size_t)n * sizeof *want);
}

static const hone_items *items_of(const session *s, uint32_t i, hone_dtype dtype) {
  const hone_tensor *t = hone_context_output(s->context, i);
  assert_non_null(t);
  assert_int_equal(t->desc.dtype, dtype);
  assert_int_equal(hone_plan_output_desc(s->plan, i)->dtype, dtype);
  return t->data;
}

/* ------------------------------------------------------------------ what works */

static const char changes[] = "opset 17\n"
                              "graph g(%s: seq f32, %t: f32[2], %p: i64[]) -> (%i, %e, %last, %n, %own) {\n"
                              "  %i = SequenceInsert(%s, %t, %p)\n"
                              "  %e = SequenceErase(%i, %p)\n"
                              "  %at = SequenceAt(%i, i64[]{-1})\n"
                              "  %last = Relu(%at)\n"
                              "  %n = SequenceLength(%e)\n"
                              "  %own = Identity(%s)\n"
                              "}\n";

static void a_sequence_goes_in_and_out(void **state) {
  (void)state;
  for (int level = REFERENCE; level < LEVELS; level++) {
    session s;
    open_or_fail(&s, changes, level);
    hone_error e = {0};
    float a[] = {1, 2, 3}, b[] = {-4, 5, -6, 7}, t[] = {8, 9};
    int64_t p = 1;
    hone_tensor item[] = {vector(a, 3), vector(b, 4)}, x = vector(t, 2), at = whole(&p);
    hone_items items = {2, (const hone_tensor *[]){&item[0], &item[1]}};
    hone_tensor given = sequence(&items);
    assert_int_equal(hone_context_run(s.context, (const hone_tensor *[]){&given, &x, &at}, NULL, &e),
                     HONE_OK);
    memset(a, 0xff, sizeof a); /* outputs outlive what was given */
    memset(b, 0xff, sizeof b);
    memset(&items, 0xff, sizeof items);
    const hone_items *i = items_of(&s, 0, HONE_SEQUENCE_OF(HONE_DTYPE_F32)),
                     *r = items_of(&s, 1, HONE_SEQUENCE_OF(HONE_DTYPE_F32)),
                     *own = items_of(&s, 4, HONE_SEQUENCE_OF(HONE_DTYPE_F32));
    assert_int_equal(i->count, 3);
    is_vector(i->item[0], 3, (float[]){1, 2, 3});
    is_vector(i->item[1], 2, (float[]){8, 9});
    is_vector(i->item[2], 4, (float[]){-4, 5, -6, 7});
    assert_int_equal(r->count, 2);
    is_vector(r->item[1], 4, (float[]){-4, 5, -6, 7});
    is_vector(hone_context_output(s.context, 2), 4, (float[]){0, 5, 0, 7});
    assert_int_equal(*(int64_t *)hone_context_output(s.context, 3)->data, 2);
    assert_int_equal(own->count, 2);
    is_vector(own->item[0], 3, (float[]){1, 2, 3});
    end(&s);
  }
}

static void an_empty_sequence_is_one(void **state) {
  (void)state;
  for (int level = REFERENCE; level < LEVELS; level++) {
    session s;
    open_or_fail(&s, changes, level);
    hone_error e = {0};
    float t[] = {8, 9};
    int64_t p = 0;
    hone_items none = {0, NULL};
    hone_tensor x = vector(t, 2), at = whole(&p), given = sequence(&none);
    assert_int_equal(hone_context_run(s.context, (const hone_tensor *[]){&given, &x, &at}, NULL, &e),
                     HONE_OK);
    assert_int_equal(items_of(&s, 0, HONE_SEQUENCE_OF(HONE_DTYPE_F32))->count, 1);
    assert_int_equal(items_of(&s, 1, HONE_SEQUENCE_OF(HONE_DTYPE_F32))->count, 0);
    assert_int_equal(items_of(&s, 4, HONE_SEQUENCE_OF(HONE_DTYPE_F32))->count, 0);
    end(&s);
  }
}

static const char optionals[] = "opset 18\n"
                                "graph g(%o: optional seq f32, %x: f32[2]) -> (%has, %got, %made, %none) {\n"
                                "  %has = OptionalHasElement(%o)\n"
                                "  %got = If(%has) {then_branch=graph yes() -> (%a) {\n"
                                "    %a = OptionalGetElement(%o)\n"
                                "  }, else_branch=graph no() -> (%b) {\n"
                                "    %b = SequenceConstruct(%x)\n"
                                "  }}\n"
                                "  %made = Optional(%x)\n"
                                "  %none = Optional() {type=type \"seq i64\"}\n"
                                "}\n";

static void optionals_hold_something_or_nothing(void **state) {
  (void)state;
  for (int level = REFERENCE; level < LEVELS; level++)
    for (int full = 0; full < 2; full++) {
      session s;
      open_or_fail(&s, optionals, level);
      hone_error e = {0};
      float a[] = {1}, b[] = {2, 3, 4}, x[] = {5, 6};
      hone_tensor item[] = {vector(a, 1), vector(b, 3)}, in = vector(x, 2);
      hone_items inner = {2, (const hone_tensor *[]){&item[0], &item[1]}};
      hone_tensor list = sequence(&inner);
      hone_items outer = {(size_t)full, (const hone_tensor *[]){&list}};
      hone_tensor given = optional(HONE_SEQUENCE_OF(HONE_DTYPE_F32), &outer);
      assert_int_equal(hone_context_run(s.context, (const hone_tensor *[]){&given, &in}, NULL, &e), HONE_OK);
      assert_int_equal(*(uint8_t *)hone_context_output(s.context, 0)->data, full);
      const hone_items *got = items_of(&s, 1, HONE_SEQUENCE_OF(HONE_DTYPE_F32));
      assert_int_equal(got->count, full ? 2 : 1);
      is_vector(got->item[got->count - 1], full ? 3 : 2, full ? b : x);
      const hone_items *made = items_of(&s, 2, HONE_OPTIONAL_OF(HONE_DTYPE_F32));
      assert_int_equal(made->count, 1);
      is_vector(made->item[0], 2, x);
      assert_int_equal(items_of(&s, 3, HONE_OPTIONAL_OF(HONE_SEQUENCE_OF(HONE_DTYPE_I64)))->count, 0);
      end(&s);
    }
}

/* The type of an empty optional, and of what goes in and out, are in the file. */
static void files_keep_the_types(void **state) {
  (void)state;
  char path[256];
  const int fd = mkstemp(temporary(path, sizeof path, "hone-sequences"));
  assert_true(fd >= 0);
  close(fd);
  hone_error e = {0};
  hone_model *m, *again;
  assert_int_equal(hone_model_parse(optionals, strlen(optionals), &m, &e), HONE_OK);
  assert_int_equal(hone_model_save(m, path, &e), HONE_OK);
  assert_int_equal(hone_model_load(path, &again, &e), HONE_OK);
  hone_engine *engine;
  hone_plan *plan;
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1, .tuning = "off"}, &engine, &e),
                   HONE_OK);
  assert_int_equal(hone_plan_create(engine, again, &(hone_plan_options){.level = 2}, &plan, &e), HONE_OK);
  assert_int_equal(hone_plan_input_desc(plan, 0)->dtype, HONE_OPTIONAL_OF(HONE_SEQUENCE_OF(HONE_DTYPE_F32)));
  assert_int_equal(hone_plan_output_desc(plan, 1)->dtype, HONE_SEQUENCE_OF(HONE_DTYPE_F32));
  assert_int_equal(hone_plan_output_desc(plan, 3)->dtype, HONE_OPTIONAL_OF(HONE_SEQUENCE_OF(HONE_DTYPE_I64)));
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  hone_model_release(again);
  hone_model_release(m);
  unlink(path);
}

static void saved_plans_run(void **state) {
  (void)state;
  char path[256];
  const int fd = mkstemp(temporary(path, sizeof path, "hone-sequences"));
  assert_true(fd >= 0);
  close(fd);
  session s;
  hone_error e = {0};
  hone_plan *again;
  hone_context *context;
  float a[] = {1, 2, 3}, t[] = {8, 9};
  int64_t p = 1;
  hone_tensor item = vector(a, 3), x = vector(t, 2), at = whole(&p);
  hone_items items = {1, (const hone_tensor *[]){&item}};
  hone_tensor given = sequence(&items);
  open_or_fail(&s, changes, 2);
  assert_int_equal(hone_plan_save(s.plan, path, &e), HONE_OK);
  if (hone_plan_open(s.engine, path, &again, &e) != HONE_OK) fail_msg("%s", e.what);
  assert_int_equal(hone_context_create(again, &context, &e), HONE_OK);
  assert_int_equal(hone_context_run(context, (const hone_tensor *[]){&given, &x, &at}, NULL, &e), HONE_OK);
  const hone_items *got = hone_context_output(context, 0)->data;
  assert_int_equal(got->count, 2);
  is_vector(got->item[0], 3, a);
  is_vector(got->item[1], 2, t);
  hone_context_destroy(context);
  hone_plan_destroy(again);
  end(&s);
  unlink(path);
}

static void every_type_has_a_name(void **state) {
  (void)state;
  for (int form = 0; form < 640;
       form += form == HONE_MAP_I64 + HONE_SEQUENCE ? 3 * HONE_SEQUENCE : HONE_SEQUENCE)
    for (int d = 1; d < HONE_DTYPE_COUNT; d++) {
      const hone_dtype t = (hone_dtype)(form | d);
      assert_int_equal(hone_dtype_from_name(hone_dtype_name(t)), t);
      assert_int_equal(hone_dtype_element(t), d);
      assert_int_equal(hone_dtype_is_tensor(t), form == 0);
      if (form) assert_int_equal(hone_dtype_size(t), sizeof(hone_items));
    }
  assert_string_equal(hone_dtype_name(HONE_OPTIONAL_OF(HONE_SEQUENCE_OF(HONE_DTYPE_F32))),
                      "optional seq f32");
  assert_string_equal(hone_dtype_name((hone_dtype)(HONE_MAP_I64 | HONE_OPTIONAL)), "unknown");
  assert_string_equal(hone_dtype_name((hone_dtype)1024), "unknown");
  assert_string_equal(hone_dtype_name((hone_dtype)(HONE_SEQUENCE | 50)), "unknown");
  assert_int_equal(hone_dtype_size((hone_dtype)(HONE_SEQUENCE | 50)), 0);
}

/* ------------------------------------------------------------------ what is refused in a model */

static void models_with_mixed_types_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *nodes;
    hone_status status;
    const char *says;
  } cases[] = {
      {"%y = SequenceConstruct(%x, %p)", HONE_ERROR_INPUT, "input 1 is i64"},
      {"%y = SequenceInsert(%s, %p)", HONE_ERROR_INPUT, "i64 is inserted into seq f32"},
      {"%y = SequenceInsert(%s, %s)", HONE_ERROR_INPUT, "seq f32 is inserted"},
      {"%y = SequenceConstruct(%s)", HONE_ERROR_INPUT, "input 0 is seq f32"},
      {"%y = SequenceAt(%x, %p)", HONE_ERROR_INPUT, "not a sequence"},
      {"%y = SequenceAt(%s, %x)", HONE_ERROR_INPUT, "the position is f32[2]"},
      {"%y = SequenceErase(%o, %p)", HONE_ERROR_INPUT, "not a sequence"},
      {"%y = SequenceLength(%x)", HONE_ERROR_INPUT, "not a sequence"},
      {"%y = Relu(%s)", HONE_ERROR_UNSUPPORTED, "not implemented for seq f32"},
      {"%y = Add(%x, %s)", HONE_ERROR_UNSUPPORTED, "not implemented for seq f32"},
      {"%y = Concat(%s, %s) {axis=0}", HONE_ERROR_UNSUPPORTED, "not implemented for seq f32"},
      {"%y = Optional(%o)", HONE_ERROR_UNSUPPORTED, "an optional of optional"},
      {"%y = Optional()", HONE_ERROR_INPUT, "neither an input nor a type"},
      {"%y = SequenceEmpty() {dtype=99}", HONE_ERROR_INPUT, "dtype 99"},
      {"%y = ConcatFromSequence(%s) {axis=0, new_axis=2}", HONE_ERROR_INPUT, "new_axis"},
      {"%y = SplitToSequence(%s)", HONE_ERROR_INPUT, "input 0 is seq"},
      {"%y = SplitToSequence(%x) {axis=3}", HONE_ERROR_INPUT, "axis"},
      {"%c = SequenceLength(%s) %b = Cast(%c) {to=9} %y = If(%b) {then_branch=graph a() -> (%u) {%u = "
       "Identity(%s)}, "
       "else_branch=graph b() -> (%v) {%v = Identity(%x)}}",
       HONE_ERROR_INPUT, "on one path"},
      {"%y = Loop(%p, _) {body=graph b(%i: i64[], %go: bool[]) -> (%on, %kept) {%on = Identity(%go) "
       "%kept = Identity(%s)}}",
       HONE_ERROR_INPUT, "a scan output is seq f32"},
      {"%y = SequenceMap(%s) {body=graph b(%t: f32[2]) -> (%u) {%u = SequenceConstruct(%t)}}",
       HONE_ERROR_INPUT, "output 0 of the body is seq f32"},
      {"%y = SequenceMap(%x) {body=graph b(%t: f32[2]) -> (%u) {%u = Relu(%t)}}", HONE_ERROR_INPUT,
       "not a sequence"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[1024], said[1024];
    session s;
    hone_error e = {0};
    snprintf(
        text, sizeof text,
        "opset 18\ngraph g(%%s: seq f32, %%o: optional f32, %%x: f32[2], %%p: i64[]) -> (%%y) {\n%s\n}\n",
        cases[i].nodes);
    const hone_status status = begin(&s, text, 2, &e);
    hone_error_format(&e, said, sizeof said);
    if (status != cases[i].status || !strstr(said, cases[i].says))
      fail_msg("%s: status %d, %s", cases[i].nodes, (int)status, said);
    end(&s);
  }
}

/* ------------------------------------------------------------------ what is refused in a run */

static void runs_name_what_does_not_fit(void **state) {
  (void)state;
  static const struct {
    const char *node;
    size_t items;
    int64_t position;
    const char *says; /* NULL: fine */
  } cases[] = {
      {"%y = SequenceAt(%s, %p)", 2, 1, NULL},
      {"%y = SequenceAt(%s, %p)", 2, -2, NULL},
      {"%y = SequenceAt(%s, %p)", 2, 2, "position 2 is outside of a sequence of 2"},
      {"%y = SequenceAt(%s, %p)", 2, -3, "position -3 is outside"},
      {"%y = SequenceAt(%s, %p)", 2, INT64_MIN, "is outside"},
      {"%y = SequenceAt(%s, %p)", 2, INT64_MAX, "is outside"},
      {"%y = SequenceAt(%s, %p)", 0, 0, "the sequence is empty"},
      {"%y = SequenceErase(%s, %p)", 2, 2, "is outside"},
      {"%y = SequenceErase(%s)", 0, 0, "the sequence is empty"},
      {"%y = SequenceInsert(%s, %x, %p)", 2, 2, NULL},
      {"%y = SequenceInsert(%s, %x, %p)", 2, 3, "is outside"},
      {"%y = SequenceInsert(%s, %x, %p)", 2, -3, "is outside"},
      {"%y = ConcatFromSequence(%s) {axis=0}", 2, 0, NULL},
      {"%y = ConcatFromSequence(%s) {axis=1}", 2, 0, "axis"},
      {"%y = ConcatFromSequence(%s) {axis=0, new_axis=1}", 2, 0, "tensor 1 of the sequence does not fit"},
      {"%y = ConcatFromSequence(%s) {axis=0}", 0, 0, "the sequence is empty"},
      {"%y = SplitToSequence(%x, %p)", 0, 1, NULL},
      {"%y = SplitToSequence(%x, %p)", 0, 5, NULL},
      {"%y = SplitToSequence(%x, %p)", 0, 0, "parts of 0"},
      {"%y = SplitToSequence(%x, %p)", 0, -1, "parts of -1"},
      {"%l = Reshape(%p, i64[1]{1}) %y = SplitToSequence(%x, %l)", 0, 2, NULL},
      {"%l = Reshape(%p, i64[1]{1}) %y = SplitToSequence(%x, %l)", 0, 1, "do not add up"},
      {"%l = Reshape(%p, i64[1]{1}) %y = SplitToSequence(%x, %l)", 0, 3, "do not add up"},
      {"%y = SequenceMap(%s) {body=graph b(%t: f32[*]) -> (%u) {%u = Relu(%t)}}", 2, 0, NULL},
      {"%y = SequenceMap(%s) {body=graph b(%t: f32[*]) -> (%u) {%u = Relu(%t)}}", 0, 0, NULL},
      {"%e = SequenceErase(%s) %y = SequenceMap(%s, %e) {body=graph b(%t: f32[*], %r: f32[*]) -> (%u) {%u = "
       "Add(%t, %r)}}",
       2, 0, "sequence 1 of SequenceMap has 1 tensors, the first has 2"},
      {"%o = Optional() {type=type \"f32\"} %y = OptionalGetElement(%o)", 0, 0, "the optional is empty"},
      {"%o = Optional() {type=type \"seq f32\"} %y = Loop(%p, _, %o) {body=graph b(%i: i64[], %go: bool[], "
       "%st: optional seq f32) -> (%on, %next) {%on = Identity(%go) %next = Identity(%s)}}",
       1, 0, "a state is an empty optional"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int level = REFERENCE; level < LEVELS; level++) {
      char text[1024], said[1024];
      session s;
      hone_error e = {0};
      snprintf(text, sizeof text,
               "opset 18\ngraph g(%%s: seq f32, %%x: f32[2], %%p: i64[]) -> (%%y) {\n%s\n}\n", cases[i].node);
      open_or_fail(&s, text, level);
      float a[] = {1, 2, 3}, b[] = {4, 5}, x[] = {6, 7};
      int64_t p = cases[i].position;
      hone_tensor item[] = {vector(a, 3), vector(b, 2)}, in = vector(x, 2), at = whole(&p);
      hone_items items = {cases[i].items, (const hone_tensor *[]){&item[0], &item[1]}};
      hone_tensor given = sequence(&items);
      const hone_status status =
          hone_context_run(s.context, (const hone_tensor *[]){&given, &in, &at}, NULL, &e);
      hone_error_format(&e, said, sizeof said);
      const char *says = cases[i].says;
      if (status != (says ? HONE_ERROR_INPUT : HONE_OK) || (says && !strstr(said, says)))
        fail_msg("%s, position %lld, level %d: status %d, %s", cases[i].node, (long long)p, level,
                 (int)status, said);
      end(&s);
    }
}

static void what_is_given_is_looked_at(void **state) {
  (void)state;
  session s;
  open_or_fail(&s, optionals, 2);
  float a[] = {1, 2}, x[] = {5, 6};
  int64_t n = 7;
  hone_tensor in = vector(x, 2), good = vector(a, 2), other = whole(&n), bare = vector(NULL, 2), open = good,
              far = good, list, given;
  open.desc.dim[0] = -1;
  far.desc.device = 1;
  const hone_tensor *item[2] = {&good, &good};
  hone_items inner = {2, item}, outer = {1, (const hone_tensor *[]){&list}};
  list = sequence(&inner);
  given = optional(HONE_SEQUENCE_OF(HONE_DTYPE_F32), &outer);
  const hone_tensor *all[] = {&given, &in};
  const hone_tensor *const bad[] = {NULL, &other, &bare, &open, &far, &list};
  hone_error e = {0};
  assert_int_equal(hone_context_run(s.context, all, NULL, &e), HONE_OK);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    item[1] = bad[i];
    assert_int_equal(hone_context_run(s.context, all, NULL, &e), HONE_ERROR_USAGE);
    assert_non_null(strstr(e.what, "does not fit the plan"));
  }
  item[1] = &good;
  inner.item = NULL;
  assert_int_equal(hone_context_run(s.context, all, NULL, &e), HONE_ERROR_USAGE);
  inner.item = item;
  list.data = NULL;
  assert_int_equal(hone_context_run(s.context, all, NULL, &e), HONE_ERROR_USAGE);
  list.data = &inner;
  list.desc.dtype = HONE_SEQUENCE_OF(HONE_DTYPE_I64);
  assert_int_equal(hone_context_run(s.context, all, NULL, &e), HONE_ERROR_USAGE);
  list.desc.dtype = HONE_SEQUENCE_OF(HONE_DTYPE_F32);
  outer = (hone_items){2, (const hone_tensor *[]){&list, &list}};
  assert_int_equal(hone_context_run(s.context, all, NULL, &e), HONE_ERROR_USAGE);
  outer = (hone_items){1, (const hone_tensor *[]){&good}};
  assert_int_equal(hone_context_run(s.context, all, NULL, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_run(s.context, (const hone_tensor *[]){&good, &in}, NULL, &e),
                   HONE_ERROR_USAGE);
  outer = (hone_items){1, (const hone_tensor *[]){&list}};
  assert_int_equal(hone_context_run(s.context, all, NULL, &e), HONE_OK);
  end(&s);
}

/* What a loop piles up in a sequence counts. */
static void a_sequence_that_grows_meets_the_budget(void **state) {
  (void)state;
  static const char text[] =
      "opset 17\n"
      "graph g(%x: f32[1024]) -> (%n) {\n"
      "  %none = SequenceEmpty()\n"
      "  %s = Loop(_, _, %none) {body=graph b(%i: i64[], %go: bool[], %st: seq f32) -> (%on, %next) {\n"
      "    %on = Identity(%go)\n"
      "    %next = SequenceInsert(%st, %x)\n"
      "  }}\n"
      "  %n = SequenceLength(%s)\n"
      "}\n";
  session s;
  open_or_fail(&s, text, 2);
  float x[1024] = {0};
  hone_tensor in = vector(x, 1024);
  hone_error e = {0};
  assert_int_equal(hone_context_run(s.context, (const hone_tensor *[]){&in},
                                    &(hone_run_options){.max_bytes = 10 << 20}, &e),
                   HONE_ERROR_MEMORY);
  end(&s);
}

/* Every allocation of planning and running fails once: an error, and nothing is lost (ASan looks). */
static void every_allocation_fails(void **state) {
  (void)state;
  const char *const models[] = {changes, optionals};
  for (size_t k = 0; k < 2; k++)
    for (uint64_t n = 1;; n++) {
      session s;
      hone_error e = {0};
      float a[] = {1, 2, 3}, x[] = {5, 6};
      int64_t p = 0;
      hone_tensor item = vector(a, 3), in = vector(x, 2), at = whole(&p), list, given;
      hone_items inner = {1, (const hone_tensor *[]){&item}}, outer = {1, (const hone_tensor *[]){&list}};
      list = sequence(&inner);
      given = optional(HONE_SEQUENCE_OF(HONE_DTYPE_F32), &outer);
      open_or_fail(&s, models[k], 2);
      hone_engine_reclaim(s.engine); /* what planning left there: the run must ask for memory itself */
      hn_mem_fail_after(n);
      hone_status status =
          hone_context_run(s.context, (const hone_tensor *[]){k ? &given : &list, &in, &at}, NULL, &e);
      const bool reached = hn_mem_failed();
      hn_mem_fail_after(0);
      end(&s);
      if (status != HONE_OK && status != HONE_ERROR_MEMORY) fail_msg("allocation %d: %s", (int)n, e.what);
      if (!reached) {
        assert_int_equal(status, HONE_OK);
        assert_true(n > 1);
        break;
      }
    }
}

/* ------------------------------------------------------------------ files of values */

/* SequenceProto of f32[2]{1, 2} and f32[1]{3}. */
static const uint8_t proto[] = {0x10, 0x01, 0x1a, 0x0e, 0x08, 0x02, 0x10, 0x01, 0x4a, 0x08,
                                0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0x00, 0x40, 0x1a, 0x0a,
                                0x08, 0x01, 0x10, 0x01, 0x4a, 0x04, 0x00, 0x00, 0x40, 0x40};

static hone_status load(const uint8_t *bytes, size_t n, hone_dtype dtype, hone_data *out, hone_error *e) {
  char path[256];
  char named[300];
  const int fd = mkstemp(temporary(path, sizeof path, "hone-sequences"));
  assert_true(fd >= 0);
  assert_int_equal(write(fd, bytes, n), n);
  close(fd);
  snprintf(named, sizeof named, "%s.pb", path);
  assert_int_equal(rename(path, named), 0);
  const hone_tensor_desc want = hone_desc(dtype, 0, NULL);
  const hone_status status = hone_data_load(named, NULL, &want, NULL, out, e);
  unlink(named);
  return status;
}

static void files_of_sequences_are_read(void **state) {
  (void)state;
  hone_data d;
  hone_error e = {0};
  assert_int_equal(load(proto, sizeof proto, HONE_SEQUENCE_OF(HONE_DTYPE_F32), &d, &e), HONE_OK);
  const hone_items *items = d.tensor.data;
  assert_int_equal(items->count, 2);
  is_vector(items->item[0], 2, (float[]){1, 2});
  is_vector(items->item[1], 1, (float[]){3});
  hone_data_free(&d);
  assert_int_equal(load(proto, sizeof proto, HONE_SEQUENCE_OF(HONE_DTYPE_I64), &d, &e), HONE_ERROR_INPUT);
  assert_non_null(strstr(e.what, "f32"));
  for (size_t n = 0; n < sizeof proto; n++) { /* cut short: whole items before the cut are a sequence, too */
    const hone_status status = load(proto, n, HONE_SEQUENCE_OF(HONE_DTYPE_F32), &d, &e);
    if (status == HONE_OK)
      hone_data_free(&d);
    else
      assert_int_equal(status, HONE_ERROR_INPUT);
    assert_true(status == HONE_OK || (n != 0 && n != 2 && n != 18));
  }
  const hone_status other = load(proto, sizeof proto, HONE_OPTIONAL_OF(HONE_DTYPE_F32), &d, &e);
  assert_int_not_equal(other, HONE_ERROR_INTERNAL);
  if (other == HONE_OK) hone_data_free(&d);
  const hone_tensor_desc want = hone_desc(HONE_SEQUENCE_OF(HONE_DTYPE_F32), 0, NULL);
  assert_int_equal(hone_data_random("s", &want, 0, 1, &d, &e), HONE_ERROR_UNSUPPORTED);
  assert_non_null(strstr(e.hint, "SequenceProto"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_sequence_goes_in_and_out),
      cmocka_unit_test(an_empty_sequence_is_one),
      cmocka_unit_test(optionals_hold_something_or_nothing),
      cmocka_unit_test(files_keep_the_types),
      cmocka_unit_test(saved_plans_run),
      cmocka_unit_test(every_type_has_a_name),
      cmocka_unit_test(models_with_mixed_types_are_refused),
      cmocka_unit_test(runs_name_what_does_not_fit),
      cmocka_unit_test(what_is_given_is_looked_at),
      cmocka_unit_test(a_sequence_that_grows_meets_the_budget),
      cmocka_unit_test(every_allocation_fails),
      cmocka_unit_test(files_of_sequences_are_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
