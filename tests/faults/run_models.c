/* Scenarios of networks: load, rewrite, save, plan, run, verify, tune. */
#include "faults/models.h"
#include "faults/scenarios.h"

#include <hone/improve.h>
#include <hone/insight.h>
#include <hone/serve.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *join(char *buf, size_t size, const char *folder, const char *name) {
  snprintf(buf, size, "%s/%s", folder, name);
  return buf;
}

static void save_network(const char *folder, const char *name) {
  char path[400], file[64];
  snprintf(file, sizeof file, "%s.onnx", name);
  hone_model *m = fault_model(name);
  if (hone_model_save(m, join(path, sizeof path, folder, file), NULL) != HONE_OK) abort();
  hone_model_release(m);
}

static void save_networks(const char *folder) {
  for (int i = 0; fault_models[i]; i++) save_network(folder, fault_models[i]);
}

static hone_status open_network(const char *folder, const char *name, hone_model **out, hone_error *error) {
  char path[400], file[64];
  snprintf(file, sizeof file, "%s.onnx", name);
  return hone_model_load(join(path, sizeof path, folder, file), out, error);
}

/* ---- load and look */

static hone_status look(hone_model *m, fault_answer *answer, hone_error *error) {
  hone_port port;
  for (uint32_t i = 0; hone_model_input(m, i, &port); i++)
    answer_line(answer, "input %s rank %d", port.name, port.desc.rank);
  hone_model *bound = NULL;
  hone_inspection seen = {0};
  hone_binding length = {.symbol = "L", .rank = 1, .dim = {9}};
  bool has_length =
      strcmp(hone_model_producer(m), "") >= 0 && hone_model_input(m, 0, &port) && port.symbol[1];
  hone_status status = hone_model_bind(m, &length, has_length, 2, &bound, NULL, error);
  if (status == HONE_OK) status = hone_model_inspect(bound, &seen, error);
  if (status == HONE_OK) answer_line(answer, "%u nodes, %g FLOPs", seen.n_nodes, seen.flops);
  hone_inspection_free(&seen);
  hone_model_release(bound);
  return status;
}

static hone_status load(const char *folder, const char *out_folder, fault_answer *answer, hone_error *error) {
  char path[400], name[64];
  hone_status status = HONE_OK;
  for (int i = 0; fault_models[i] && status == HONE_OK; i++) {
    hone_model *m = NULL;
    status = open_network(folder, fault_models[i], &m, error);
    if (status == HONE_OK) status = look(m, answer, error);
    snprintf(name, sizeof name, "%s.onnx", fault_models[i]);
    if (status == HONE_OK) status = hone_model_save(m, join(path, sizeof path, out_folder, name), error);
    hone_model_release(m);
  }
  return status;
}
const scenario scenario_load = {"load", save_networks, load, false};

static void *read_all(const char *path, size_t *size) {
  static char bytes[1 << 20];
  FILE *f = fopen(path, "rb");
  *size = f ? fread(bytes, 1, sizeof bytes, f) : 0;
  if (f) fclose(f);
  return bytes;
}

static hone_status load_memory(const char *folder, const char *out_folder, fault_answer *answer,
                               hone_error *error) {
  (void)out_folder;
  char path[400];
  size_t size;
  const void *bytes = read_all(join(path, sizeof path, folder, "control.onnx"), &size);
  hone_model *m = NULL;
  if (!size) { /* this program's own reading failed, not hone's */
    *error = (hone_error){.status = HONE_ERROR_IO, .what = "the test could not read"};
    return HONE_ERROR_IO;
  }
  hone_status status = hone_model_load_memory(bytes, size, folder, &m, error);
  if (status == HONE_OK) status = look(m, answer, error);
  hone_model_release(m);
  return status;
}
const scenario scenario_load_memory = {"load_memory", save_networks, load_memory, false};

/* ---- rewrite */

static hone_status optimize(const char *folder, const char *out_folder, fault_answer *answer,
                            hone_error *error) {
  char path[400], name[64];
  hone_status status = HONE_OK;
  for (int i = 0; fault_models[i] && status == HONE_OK; i++) {
    hone_model *m = NULL, *better = NULL;
    hone_rewrites rewrites = {0};
    status = open_network(folder, fault_models[i], &m, error);
    for (int level = 1; level <= 3 && status == HONE_OK; level++) {
      hone_model_release(better);
      better = NULL;
      hone_optimize_options o = {.level = level, .verify_passes = level == 3 && i == 0};
      status = hone_model_optimize(m, &o, &better, &rewrites, error);
      if (status == HONE_OK) answer_line(answer, "%u records, %u nodes", rewrites.n, rewrites.nodes_after);
      for (uint32_t k = 0; k < rewrites.n; k++)
        answer_line(answer, "%d %s: %s", rewrites.record[k].hit, rewrites.record[k].pass,
                    rewrites.record[k].reason);
      hone_rewrites_free(&rewrites);
    }
    snprintf(name, sizeof name, "%s.onnx", fault_models[i]);
    if (status == HONE_OK) status = hone_model_save(better, join(path, sizeof path, out_folder, name), error);
    hone_model_release(better);
    hone_model_release(m);
  }
  return status;
}
const scenario scenario_optimize = {"optimize", save_networks, optimize, false};

/* ---- plan and run */

static const hone_binding nine = {.symbol = "L", .rank = 1, .dim = {9}};

static hone_plan_options plan_options(const char *name) {
  return (hone_plan_options){
      .level = -1, .bindings = &nine, .n_bindings = strcmp(name, "transformer") == 0, .batch = 1};
}

static hone_status run_plan(hone_plan *plan, fault_answer *answer, hone_error *error) {
  hone_context *context = NULL;
  fault_feed feed = {0};
  hone_status status = hone_context_create(plan, &context, error);
  if (status == HONE_OK) status = fault_feed_make(plan, &feed, error);
  for (int i = 0; i < 2 && status == HONE_OK; i++) status = hone_context_run(context, feed.list, NULL, error);
  for (uint32_t i = 0; status == HONE_OK && i < hone_plan_outputs(plan); i++) {
    const hone_tensor *y = hone_context_output(context, i);
    char shape[96];
    hone_desc_format(&y->desc, shape, sizeof shape);
    if (y->desc.dtype == HONE_DTYPE_STRING)
      for (int64_t k = 0; k < hone_desc_count(&y->desc); k++)
        answer_bytes(answer, shape, ((const hone_string *)y->data)[k].ptr,
                     ((const hone_string *)y->data)[k].len);
    else
      answer_bytes(answer, shape, y->data, (size_t)hone_desc_bytes(&y->desc));
  }
  fault_feed_free(&feed);
  hone_context_destroy(context);
  return status;
}

static void say_steps(const hone_plan *plan, fault_answer *answer) {
  hone_step_info step;
  for (uint32_t i = 0; hone_plan_step(plan, i, &step); i++) {
    answer_line(answer, "%s %s %s %s", step.name, step.what, step.tactic, step.shape);
    for (uint32_t k = 0; k < step.n_refused; k++)
      answer_line(answer, "  %s: %s", step.refused[k].by, step.refused[k].text);
  }
}

static hone_status plan_of(const char *folder, const char *name, uint32_t threads,
                           const hone_plan_options *options, fault_answer *answer, hone_error *error) {
  hone_model *m = NULL;
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_status status = open_network(folder, name, &m, error);
  if (status == HONE_OK)
    status = hone_engine_create(&(hone_engine_options){.threads = threads, .tuning = "off"}, &engine, error);
  if (status == HONE_OK) status = hone_plan_create(engine, m, options, &plan, error);
  if (status == HONE_OK) {
    say_steps(plan, answer);
    status = run_plan(plan, answer, error);
  }
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  hone_model_release(m);
  return status;
}

#define PLAN(network)                                                                                        \
  static hone_status plan_##network(const char *folder, const char *out_folder, fault_answer *answer,        \
                                    hone_error *error) {                                                     \
    (void)out_folder;                                                                                        \
    hone_plan_options o = plan_options(#network);                                                            \
    return plan_of(folder, #network, 2, &o, answer, error);                                                  \
  }                                                                                                          \
  const scenario scenario_plan_##network = {"plan_" #network, save_networks, plan_##network, false};
PLAN(convolutions)
PLAN(transformer)
PLAN(recurrent)
PLAN(control)
PLAN(quantised)
PLAN(qlinear)

/* As the file says, by the references, and in bf16. */
static hone_status plan_plain(const char *folder, const char *out_folder, fault_answer *answer,
                              hone_error *error) {
  (void)out_folder;
  static const char *const stays[] = {"conv5"};
  hone_plan_options o = plan_options("convolutions");
  o.level = 0;
  hone_status status = plan_of(folder, "convolutions", 1, &o, answer, error);
  o.reference = true;
  if (status == HONE_OK) status = plan_of(folder, "convolutions", 1, &o, answer, error);
  o = plan_options("convolutions");
  o.precision = "bf16";
  o.f32_nodes = stays;
  o.n_f32_nodes = 1;
  o.prefer = HONE_PREFER_MEMORY;
  o.chains = HONE_CHAINS_ALWAYS;
  if (status == HONE_OK) status = plan_of(folder, "convolutions", 3, &o, answer, error);
  return status;
}
const scenario scenario_plan_plain = {"plan_plain", save_networks, plan_plain, false};

/* ---- saved plans */

static hone_status save_plans(const char *folder, const char *out_folder, fault_answer *answer,
                              hone_error *error) {
  char path[400], name[64];
  hone_engine *engine = NULL;
  hone_status status =
      hone_engine_create(&(hone_engine_options){.threads = 1, .tuning = "off"}, &engine, error);
  for (int i = 0; fault_models[i] && status == HONE_OK; i++) {
    if (strcmp(fault_models[i], "control") == 0) continue;
    hone_model *m = NULL;
    hone_plan *plan = NULL;
    hone_plan_options o = plan_options(fault_models[i]);
    status = open_network(folder, fault_models[i], &m, error);
    if (status == HONE_OK) status = hone_plan_create(engine, m, &o, &plan, error);
    snprintf(name, sizeof name, "%s.plan", fault_models[i]);
    if (status == HONE_OK) status = hone_plan_save(plan, join(path, sizeof path, out_folder, name), error);
    if (status == HONE_OK) answer_line(answer, "%s", fault_models[i]);
    hone_plan_destroy(plan);
    hone_model_release(m);
  }
  hone_engine_destroy(engine);
  return status;
}
const scenario scenario_save_plans = {"save_plans", save_networks, save_plans, false};

static void prepare_plans(const char *folder) {
  static char nowhere[1 << 20];
  hone_error e = {0};
  save_networks(folder);
  if (save_plans(folder, folder, (fault_answer *)nowhere, &e) != HONE_OK) abort();
}

static hone_status open_plans(const char *folder, const char *out_folder, fault_answer *answer,
                              hone_error *error) {
  (void)out_folder;
  char path[400], name[64];
  hone_engine *engine = NULL;
  hone_status status =
      hone_engine_create(&(hone_engine_options){.threads = 1, .tuning = "off"}, &engine, error);
  for (int i = 0; fault_models[i] && status == HONE_OK; i++) {
    if (strcmp(fault_models[i], "control") == 0) continue;
    hone_plan *plan = NULL;
    uint32_t threads = 0;
    snprintf(name, sizeof name, "%s.plan", fault_models[i]);
    status = hone_plan_saved_threads(join(path, sizeof path, folder, name), &threads, error);
    if (status == HONE_OK) status = hone_plan_open(engine, path, &plan, error);
    if (status == HONE_OK) {
      say_steps(plan, answer);
      status = run_plan(plan, answer, error);
    }
    hone_plan_destroy(plan);
  }
  hone_engine_destroy(engine);
  return status;
}
const scenario scenario_open_plans = {"open_plans", prepare_plans, open_plans, false};

/* ---- verify, precision, tuning */

static hone_status verify(const char *folder, const char *out_folder, fault_answer *answer,
                          hone_error *error) {
  (void)out_folder;
  hone_status status = HONE_OK;
  for (int i = 0; fault_models[i] && status == HONE_OK; i++) {
    hone_model *m = NULL;
    hone_verify_result r = {0};
    hone_verify_options o = {.inputs = 1, .threads = 1, .bindings = &nine, .n_bindings = i == 1};
    status = open_network(folder, fault_models[i], &m, error);
    if (status == HONE_OK) status = hone_verify(m, NULL, &o, &r, error);
    if (status == HONE_OK)
      answer_line(answer, "verdict %d of %u: %g (%s)", (int)r.verdict, r.inputs, r.max_abs, r.reason);
    hone_model_release(m);
  }
  return status;
}
const scenario scenario_verify = {"verify", save_networks, verify, false};

static hone_status precision(const char *folder, const char *out_folder, fault_answer *answer,
                             hone_error *error) {
  (void)out_folder;
  hone_model *m = NULL;
  hone_precision_choice choice = {0};
  hone_precision_options o = {.samples = 1, .threads = 1, .budget = 1e-3, .narrow = "bf16"};
  hone_status status = open_network(folder, "products", &m, error);
  if (status == HONE_OK) status = hone_precision_choose(m, &o, &choice, error);
  if (status == HONE_OK)
    answer_line(answer, "%u of %u stay, %g", choice.n_f32_nodes, choice.candidates, choice.error);
  for (uint32_t i = 0; i < choice.n_f32_nodes; i++) answer_line(answer, "%s", choice.f32_nodes[i]);
  hone_precision_choice_free(&choice);
  hone_model_release(m);
  return status;
}
/* A search makes a plan for each layer: the network has a few. */
static void save_products(const char *folder) { save_network(folder, "products"); }
const scenario scenario_precision = {"precision", save_products, precision, false};

static hone_status tune(const char *folder, const char *out_folder, fault_answer *answer, hone_error *error) {
  char path[400];
  hone_model *m = NULL;
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_tune_report report = {0};
  const hone_plan_options o = plan_options("recurrent");
  hone_engine_options e = {.threads = 1, .tuning = join(path, sizeof path, out_folder, "tuned.txt")};
  hone_status status = open_network(folder, "recurrent", &m, error);
  if (status == HONE_OK) status = hone_engine_create(&e, &engine, error);
  if (status == HONE_OK) status = hone_plan_create(engine, m, &o, &plan, error);
  if (status == HONE_OK)
    status = hone_tune(plan, &(hone_tune_options){.max_seconds = 0.02, .alone = true, .again = true}, &report,
                       error);
  if (status == HONE_OK) answer_line(answer, "%u steps", report.n_steps);
  hone_tune_report_free(&report);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  hone_model_release(m);
  return status;
}
const scenario scenario_tune = {"tune", save_networks, tune, true};

static hone_status zoo(const char *folder, const char *out_folder, fault_answer *answer, hone_error *error) {
  (void)folder;
  char path[400];
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < hone_zoo_count() && status == HONE_OK; i++) {
    const char *name = hone_zoo_name(i);
    if (strcmp(name, "many_inputs") != 0 && strcmp(name, "res3_block") != 0) continue;
    hone_model *m = NULL;
    status = hone_zoo_build(name, &(hone_zoo_options){.batch = 1, .width = 0.05, .size = 16}, &m, error);
    if (status == HONE_OK) {
      answer_line(answer, "%s: %u nodes", name, hone_model_nodes(m));
      status = hone_model_save(m, join(path, sizeof path, out_folder, name), error);
    }
    hone_model_release(m);
  }
  return status;
}
const scenario scenario_zoo = {"zoo", NULL, zoo, false};

/* ---- a server without sockets: a model, a request as JSON, one as bytes, and what was counted */

static hone_status ask(hone_server *server, const char *path, const char *json_size, const char *body,
                       size_t size, fault_answer *answer, hone_error *error) {
  const hone_server_request r = {
      .method = size ? "POST" : "GET", .path = path, .json_size = json_size, .body = body, .size = size};
  hone_server_response out;
  hone_server_answer(server, &r, &out);
  /* What there was no memory for is 503, or 500 without a body where there was none to say so either. */
  const hone_status status = out.status == 200                                       ? HONE_OK
                             : out.status == 503 || (out.status == 500 && !out.body) ? HONE_ERROR_MEMORY
                                                                                     : HONE_ERROR_INTERNAL;
  if (status == HONE_OK && size)
    answer_line(answer, "%.*s", (int)(out.json_size ? out.json_size : out.size), out.body);
  else if (status != HONE_OK)
    *error = (hone_error){.status = status, .what = "the server had no memory"};
  hone_server_response_free(&out);
  return status;
}

static hone_status serve(const char *folder, const char *out_folder, fault_answer *answer,
                         hone_error *error) {
  (void)folder, (void)out_folder;
  static const char text[] = "ir 8\nopset 17\ngraph g(%x: f32[Nx2]) -> (%y) { %y = Neg(%x) }",
                    json[] =
                        "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1,2]}],"
                        "\"id\":\"a\"}",
                    bytes[] =
                        "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,2],\"datatype\":\"FP32\",\"parameters\":"
                        "{\"binary_data_size\":8}}],\"parameters\":{\"binary_data_output\":true}}01234567";
  char size[16];
  hone_model *m = NULL;
  hone_engine *engine = NULL;
  hone_server *server = NULL;
  snprintf(size, sizeof size, "%zu", sizeof bytes - 9);
  hone_status status = hone_model_parse(text, sizeof text - 1, &m, error);
  if (status == HONE_OK)
    status = hone_engine_create(&(hone_engine_options){.threads = 1, .tuning = "off"}, &engine, error);
  if (status == HONE_OK) status = hone_server_create(engine, NULL, &server, error);
  if (status == HONE_OK)
    status = hone_server_add(server, m, &(hone_served_options){.name = "net", .max_batch = 2}, error);
  if (status == HONE_OK)
    status = ask(server, "/v2/models/net/infer", NULL, json, sizeof json - 1, answer, error);
  if (status == HONE_OK)
    status = ask(server, "/v2/models/net/infer", size, bytes, sizeof bytes - 1, answer, error);
  if (status == HONE_OK) status = ask(server, "/v2/models/net", NULL, NULL, 0, answer, error);
  if (status == HONE_OK) status = ask(server, "/metrics", NULL, NULL, 0, answer, error);
  hone_server_destroy(server);
  hone_engine_destroy(engine);
  hone_model_release(m);
  return status;
}
const scenario scenario_serve = {"serve", NULL, serve, false};

/* A decoder that generates. */
static hone_status generate_with(const char *text, fault_answer *answer, hone_error *error) {
  static const char json[] = "{\"input_ids\":[1,2],\"parameters\":{\"max_tokens\":2,\"temperature\":1,"
                             "\"seed\":1}}";
  hone_model *m = NULL;
  hone_engine *engine = NULL;
  hone_server *server = NULL;
  hone_status status = hone_model_parse(text, strlen(text), &m, error);
  if (status == HONE_OK)
    status = hone_engine_create(&(hone_engine_options){.threads = 1, .tuning = "off"}, &engine, error);
  if (status == HONE_OK) status = hone_server_create(engine, NULL, &server, error);
  if (status == HONE_OK)
    status = hone_server_add(server, m, &(hone_served_options){.name = "net", .context = 4, .sequences = 2},
                             error);
  if (status == HONE_OK)
    status = ask(server, "/v2/models/net/generate", NULL, json, sizeof json - 1, answer, error);
  if (status == HONE_OK)
    status = ask(server, "/v2/models/net/generate_stream", NULL, json, sizeof json - 1, answer, error);
  if (status == HONE_OK) status = ask(server, "/metrics", NULL, NULL, 0, answer, error);
  hone_server_destroy(server);
  hone_engine_destroy(engine);
  hone_model_release(m);
  return status;
}

static hone_status generate(const char *folder, const char *out_folder, fault_answer *answer,
                            hone_error *error) {
  (void)folder, (void)out_folder;
  static const char text[] =
      "opset 17\nopset \"com.microsoft\" 1\ngraph g(%input_ids: i64[BxS], %attention_mask: i64[BxT], "
      "%pk: f32[Bx1xPx4], %pv: f32[Bx1xPx4]) -> (%logits, %ok, %ov) {\n"
      "  const %t: f32[5x4] = {1, 2, -3, 4, -5, 6, 7, -8, 9, 10, -11, 12, 13, 14, -15, 16, 17, -18, 19, 20}\n"
      "  const %one: i64[1] = {1}\n  const %unit: i64 = {1}\n  %x = Gather(%t, %input_ids)\n"
      "  %s = ReduceSum(%attention_mask, %one) {keepdims=0}\n  %d = Sub(%s, %unit)\n  %n = Cast(%d) {to=6}\n"
      "  %h = Shape(%attention_mask)\n  %w = Gather(%h, %unit)\n  %m = Cast(%w) {to=6}\n"
      "  %logits, %ok, %ov = com.microsoft::GroupQueryAttention(%x, %x, %x, %pk, %pv, %n, %m) "
      "{num_heads=1, kv_num_heads=1}\n}\n";
  return generate_with(text, answer, error);
}
const scenario scenario_generate = {"generate", NULL, generate, false};

/* One whose caches are longer than texts: whether it takes that is tried. */
static hone_status generate_joined(const char *folder, const char *out_folder, fault_answer *answer,
                                   hone_error *error) {
  (void)folder, (void)out_folder;
  static const char text[] =
      "opset 24\ngraph g(%input_ids: i64[BxS], %attention_mask: i64[BxT], %pk: f32[Bx1xPx4], %pv: "
      "f32[Bx1xPx4]) -> (%logits, %ok, %ov) {\n"
      "  const %t: f32[5x4] = {1, 2, -3, 4, -5, 6, 7, -8, 9, 10, -11, 12, 13, 14, -15, 16, 17, -18, 19, 20}\n"
      "  const %one: i64[1] = {1}\n  const %two: i64[2] = {1, 2}\n  %x = Gather(%t, %input_ids)\n"
      "  %h = Unsqueeze(%x, %one)\n  %w = Unsqueeze(%attention_mask, %two)\n  %m = Cast(%w) {to=9}\n"
      "  %ok = Concat(%pk, %h) {axis=2}\n  %ov = Concat(%pv, %h) {axis=2}\n"
      "  %y = Attention(%h, %ok, %ov, %m)\n  %logits = Squeeze(%y, %one)\n}\n";
  return generate_with(text, answer, error);
}
const scenario scenario_generate_joined = {"generate_joined", NULL, generate_joined, false};

/* ---- profiles of hone's own runs */

static hone_status record_run(hone_plan *plan, hone_facts *facts, hone_error *error) {
  hone_context *context = NULL;
  fault_feed feed = {0};
  hone_status status = hone_context_create(plan, &context, error);
  if (status == HONE_OK) status = fault_feed_make(plan, &feed, error);
  if (status == HONE_OK) status = hone_context_record(context, facts, 3, error);
  for (int i = 0; i < 3 && status == HONE_OK; i++) {
    status = hone_context_stage_begin(context, HONE_SPAN_PRE, error);
    if (status == HONE_OK) status = hone_context_stage_end(context, error);
    if (status == HONE_OK) status = hone_context_run(context, feed.list, NULL, error);
  }
  if (status == HONE_OK) status = hone_context_record_end(context, error);
  fault_feed_free(&feed);
  hone_context_destroy(context);
  return status;
}

static hone_status record(const char *folder, const char *out_folder, fault_answer *answer,
                          hone_error *error) {
  (void)out_folder;
  hone_model *m = NULL;
  hone_engine *engine = NULL;
  hone_plan *plan = NULL, *other = NULL;
  hone_facts *facts = NULL;
  hone_profile *profile = NULL;
  hone_findings *findings = NULL;
  char *text = NULL;
  size_t size = 0;
  hone_plan_options o = plan_options("convolutions");
  hone_status status = open_network(folder, "convolutions", &m, error);
  if (status == HONE_OK)
    status = hone_engine_create(&(hone_engine_options){.threads = 1, .tuning = "off"}, &engine, error);
  o.level = 0;
  if (status == HONE_OK) status = hone_plan_create(engine, m, &o, &plan, error);
  o.level = 2, o.preview = true;
  if (status == HONE_OK) status = hone_plan_create(engine, m, &o, &other, error);
  if (status == HONE_OK && !(facts = hone_facts_create())) {
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "NULL"};
    status = HONE_ERROR_MEMORY;
  }
  if (status == HONE_OK) status = record_run(plan, facts, error);
  if (status == HONE_OK) status = hone_plan_preview(other, facts, error);
  if (status == HONE_OK) status = hone_facts_check(facts, error);
  if (status == HONE_OK) status = hone_facts_to_json(facts, &text, &size, error);
  if (status == HONE_OK) status = hone_profile_create(facts, NULL, &profile, error);
  if (status == HONE_OK)
    status = hone_diagnose(profile, NULL, &findings, error); /* what it says depends on the times */
  for (size_t i = 0, n = 0; status == HONE_OK && (i == 0 || i < n); i++) {
    const hone_step_fact *step = &hone_facts_steps(facts, &n)[i];
    answer_line(answer, "%s %s %s: %s to %s, %zu alternatives", step->name, step->tactic, step->epilogue,
                step->shape_in, step->shape_out, step->alternative_count);
  }
  for (size_t i = 0, n = 0; status == HONE_OK && (i == 0 || i < n); i++) {
    const hone_node_fact *node = &hone_facts_nodes(facts, &n)[i];
    answer_line(answer, "%s is %s: %s", node->name, hone_node_fate_name(node->fate), node->reason);
  }
  if (status == HONE_OK) {
    size_t spans, misses, preview;
    hone_facts_spans(facts, &spans);
    hone_facts_near_misses(facts, &misses);
    hone_facts_preview_steps(facts, &preview);
    answer_line(answer, "%zu spans, %zu near misses, %zu steps of another plan", spans, misses, preview);
    answer_line(answer, "%zu layers of %zu iterations", profile->layer_count, profile->iterations);
  }
  free(text);
  hone_findings_destroy(findings);
  hone_profile_destroy(profile);
  hone_facts_destroy(facts);
  hone_plan_destroy(other);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  hone_model_release(m);
  return status;
}
const scenario scenario_record = {"record", save_networks, record, false};
