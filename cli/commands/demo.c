/* hone demo: what each step of optimising is worth, on parts of real networks. */
#include "cli/reports/demo.h"
#include "cli/options/options.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 10 };
/* Batch normalisation stays a step of its own. */
#define UNFOLDED "-fold_batch_norm,-fold_batch_norm_before,-fold_scale_shift"

/* The boxes that are left are found by the host, whatever the device has for it. */
#define NO_BOXES "-non_max_suppression*"

typedef struct demo {
  const char *name, *title;
  int64_t device_batch, host_batch; /* by default */
  hone_demo_row row[MOST_ROWS];
  /* The part's rows 0 and `fused`, in this network: Amdahl's prediction beside what was measured. */
  const char *network;
  int64_t network_device_batch;
  uint32_t fused;
  const char *without;                /* the processor's last row, in words */
  bool copies;                        /* what counts is how inputs come to the device */
  bool same;                          /* rows 0 and 1 are to give the same answers, bit for bit */
  bool boxes;                         /* whole calls, calls a second, memory, and what finding boxes takes */
  int (*other)(const cli_args *args); /* a table of its own; it alone takes a model */
} demo;

static const demo demos[] = {
    {.name = "resnet50-res3",
     .title =
         "ResNet-50, third stage: 1x1 convolution + batch normalisation + sum + ReLU, and its whole block",
     .device_batch = 2048,
     .host_batch = 4,
     .row = {{.label = "separate operators",
              .network = "res3_conv3",
              .passes = UNFOLDED,
              .separate = true,
              .chains = HONE_CHAINS_NEVER,
              .part = true},
             {.label = "batch norm folded",
              .network = "res3_conv3",
              .separate = true,
              .chains = HONE_CHAINS_NEVER,
              .part = true},
             {.label = "Conv+BN+Sum+ReLU fused",
              .network = "res3_conv3",
              .chains = HONE_CHAINS_NEVER,
              .part = true},
             {.label = "the same in 8 bits",
              .network = "res3_conv3",
              .chains = HONE_CHAINS_NEVER,
              .part = true,
              .codes = true},
             {.label = "block: separate operators",
              .network = "res3_block",
              .passes = UNFOLDED,
              .separate = true,
              .chains = HONE_CHAINS_NEVER,
              .part = true},
             {.label = "block: three fused convolutions",
              .network = "res3_block",
              .chains = HONE_CHAINS_NEVER,
              .part = true},
             {.label = "whole block as hone chooses",
              .network = "res3_block",
              .chains = HONE_CHAINS_FASTER,
              .part = true},
             {.label = "block in 8 bits",
              .network = "res3_block",
              .chains = HONE_CHAINS_FASTER,
              .part = true,
              .codes = true}},
     .network = "resnet50",
     .network_device_batch = 64,
     .fused = 2},
    {.name = "mobilenetv2",
     .title = "MobileNetV2: from f32 and separate operators to narrow, fused and a kernel for depthwise "
              "convolutions",
     .device_batch = 256,
     .host_batch = 1,
     .row =
         {{.label = "f32, separate operators",
           .network = "mobilenetv2",
           .precision = "f32",
           .passes = UNFOLDED,
           .separate = true,
           .chains = HONE_CHAINS_NEVER},
          {.label = "f32, fused", .network = "mobilenetv2", .precision = "f32", .chains = HONE_CHAINS_NEVER},
          {.label = "narrow, fused", .network = "mobilenetv2", .chains = HONE_CHAINS_NEVER},
          {.label = "and chains where they are faster",
           .network = "mobilenetv2",
           .chains = HONE_CHAINS_FASTER},
          {.label = "narrow, fused, no depthwise kernel",
           .network = "mobilenetv2",
           .tactics = "-depthwise*",
           .chains = HONE_CHAINS_NEVER}},
     .without = "Without its own kernel a depthwise convolution is a matrix product a channel, with one "
                "column of weights."},
    {.name = "add-relu",
     .title = "Add and ReLU of two feature maps: as two operators, and as one",
     .device_batch = 256,
     .host_batch = 32,
     .row = {{.label = "Add, then Relu",
              .network = "add_relu",
              .precision = "f32",
              .separate = true,
              .chains = HONE_CHAINS_NEVER},
             {.label = "Add+Relu as one",
              .network = "add_relu",
              .precision = "f32",
              .chains = HONE_CHAINS_NEVER}},
     .same = true},
    {.name = "merged-copies",
     .title = "Sixteen small inputs: one copy each, and one for all",
     .device_batch = 1,
     .host_batch = 1,
     .row = {{.label = "one copy an input",
              .network = "many_inputs",
              .precision = "f32",
              .separate = true,
              .chains = HONE_CHAINS_NEVER},
             {.label = "one copy for all",
              .network = "many_inputs",
              .precision = "f32",
              .chains = HONE_CHAINS_NEVER}},
     .copies = true},
    {.name = "yolov3",
     .title =
         "YOLOv3 with decoding and NonMaxSuppression: from f32 and separate operators to narrow, fused and "
         "boxes on the device",
     .device_batch = 1,
     .host_batch = 1,
     .boxes = true,
     .row = {{.label = "f32, separate, boxes by the host",
              .network = "yolov3",
              .precision = "f32",
              .passes = UNFOLDED,
              .tactics = NO_BOXES,
              .separate = true,
              .chains = HONE_CHAINS_NEVER,
              .boxes = true,
              .hosted = true},
             {.label = "f32, fused, boxes by the host",
              .network = "yolov3",
              .precision = "f32",
              .tactics = NO_BOXES,
              .boxes = true,
              .hosted = true},
             {.label = "narrow, fused, boxes by the host",
              .network = "yolov3",
              .tactics = NO_BOXES,
              .boxes = true,
              .hosted = true},
             {.label = "narrow, fused, boxes on the device",
              .network = "yolov3",
              .boxes = true,
              .accelerated = true}}},
    {.name = "int8",
     .title = "A classifier in f32, 16 bits, 8 bits and mixed: answers, time and memory",
     .other = cli_demo_int8},
};
enum { DEMOS = sizeof demos / sizeof *demos };

/* The time that the machine's roofs allow for what the row's steps do and move; 0: not known. */
static double roof_ms(const cli_demo_machine *m, const hone_demo_row *row, const hone_demo_result *r) {
  const double gflops = row->codes ? m->int8_gops : row->precision ? m->f32_gflops : m->narrow_gflops;
  if (gflops <= 0 || m->gbs <= 0) return 0;
  const double compute = r->flops / gflops * 1e-6, memory = r->moved / m->gbs * 1e-6;
  return compute > memory ? compute : memory;
}

/* Decoding and suppression. Beside an accelerator the host's part and the copies for it are in no step: what
 * a call takes beside its inputs' way and the network. */
static double boxes_ms(const cli_demo_machine *m, const hone_demo_result *r) {
  const double rest = m->accelerator ? r->end_ms - r->h2d_ms - (r->steps_ms - r->block_ms) : 0;
  return rest > r->block_ms ? rest : r->block_ms;
}

static const char *precision_of(const cli_demo_machine *m, const hone_demo_row *row) {
  return row->codes ? "int8" : row->precision ? row->precision : m->of.narrow;
}

/* Rows for accelerators are a demo's last. */
static bool has_row(const demo *d, const cli_demo_machine *m, uint32_t i) {
  return d->row[i].label && (m->accelerator || !d->row[i].accelerated);
}

static bool whole(const demo *d) { return d->copies || d->boxes; }

static void print_row(const demo *d, const cli_demo_machine *m, const hone_demo_row *row,
                      const hone_demo_result *r, double first_ms) {
  if (!r->measured) {
    cli_print("%-34s %-5s not measured: %s\n", row->label, precision_of(m, row), r->why);
    return;
  }
  const double ms = whole(d) ? r->end_ms : r->ms;
  if (d->boxes)
    cli_print("%-34s %-5s %6u %9.3f %9.1f %9.3f %7.1f %% %7.0f %6.2fx\n", row->label, precision_of(m, row),
              r->steps, r->end_ms, 1e3 / r->end_ms, boxes_ms(m, r),
              100 * boxes_ms(m, r) / (m->accelerator ? r->end_ms : r->steps_ms), r->memory * 1e-6,
              first_ms / ms);
  else if (d->copies)
    cli_print("%-34s %-5s %9.4f %9.4f %6.2fx\n", row->label, precision_of(m, row), r->end_ms, r->h2d_ms,
              first_ms / ms);
  else {
    char share[16] = "-";
    if (roof_ms(m, row, r) > 0) snprintf(share, sizeof share, "%.0f %%", 100 * roof_ms(m, row, r) / r->ms);
    cli_print("%-34s %-5s %6u %9.3f %8.2f %9.1f %8s %6.2fx\n", row->label, precision_of(m, row), r->steps,
              r->ms, r->flops / r->ms * 1e-9, r->moved * 1e-6, share, first_ms / ms);
  }
}

static json_t *row_json(const cli_demo_machine *m, const hone_demo_row *row, const hone_demo_result *r) {
  if (!r->measured)
    return json_pack("{s:s, s:s, s:s}", "label", row->label, "precision", precision_of(m, row),
                     "not_measured", r->why);
  return json_pack(
      "{s:s, s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "label", row->label,
      "network", row->network, "precision", precision_of(m, row), "steps", (int)r->steps, "ms",
      cli_real(r->ms), "end_to_end_ms", cli_real(r->end_ms), "h2d_ms", cli_real(r->h2d_ms), "memory_bytes",
      cli_real(r->memory), "boxes_ms", row->boxes ? cli_real(boxes_ms(m, r)) : json_null(), "steps_ms",
      row->boxes ? cli_real(r->steps_ms) : json_null(), "tflops", cli_real(r->flops / r->ms * 1e-9), "flops",
      cli_real(r->flops), "bytes", cli_real(r->moved), "roof_pct",
      roof_ms(m, row, r) > 0 ? cli_real(100 * roof_ms(m, row, r) / r->ms) : json_null());
}

/* Amdahl: p, the share of the network's time that is no convolution, goes as much faster as it does in the
 * part. */
typedef struct prediction {
  bool known;
  int64_t batch;
  double p, s, predicted, measured, before_ms, after_ms;
  /* The part's own places in the network: all its operators, in the blocks behind the first one. */
  uint32_t block_nodes;
  double block_p, block_s, block_predicted, block_measured;
} prediction;

static hone_status predict(const demo *d, const cli_demo_machine *m, const hone_demo_result *part,
                           prediction *out, hone_error *error) {
  const hone_demo_result *before = &part[0], *after = &part[d->fused];
  hone_demo_row slow = d->row[0], fast = d->row[d->fused];
  hone_demo_result whole, fused;
  *out = (prediction){.batch = m->accelerator ? d->network_device_batch : 1};
  if (!before->measured || !after->measured || before->conv_share < 0) return HONE_OK;
  slow.network = fast.network = d->network;
  slow.part = fast.part = false;
  hone_demo_block block = {0};
  hone_status status = hone_demo_block_find(&m->of, d->network, out->batch, after->shape, &block, error);
  if (status == HONE_OK) status = hone_demo_measure(&m->of, &slow, out->batch, true, &block, &whole, error);
  if (status == HONE_OK) status = hone_demo_measure(&m->of, &fast, out->batch, true, &block, &fused, error);
  out->block_nodes = block.n;
  hone_demo_block_free(&block);
  if (status != HONE_OK || !whole.measured || !fused.measured) return status;
  if (out->block_nodes && whole.steps_ms > 0) {
    out->block_p = whole.block_ms / whole.steps_ms;
    out->block_s = before->ms / after->ms;
    out->block_predicted = hone_amdahl(out->block_p, out->block_s);
    out->block_measured = whole.steps_ms / (whole.steps_ms - whole.block_ms + fused.block_ms);
  }
  const double conv = before->conv_share * before->ms, rest = before->ms - conv, left = after->ms - conv;
  out->p = 1 - whole.conv_share;
  out->s = rest / (left > 0.02 * rest ? left : 0.02 * rest); /* beyond 50 times nothing changes any more */
  out->predicted = hone_amdahl(out->p, out->s);
  out->measured = whole.ms / fused.ms;
  out->before_ms = whole.ms;
  out->after_ms = fused.ms;
  out->known = true;
  return HONE_OK;
}

static int finish_json(const demo *d, const cli_demo_machine *m, int64_t batch, const hone_demo_result *r,
                       const prediction *x, const cli_demo_equal *e) {
  json_t *rows = json_array();
  for (uint32_t i = 0; has_row(d, m, i); i++) json_array_append_new(rows, row_json(m, &d->row[i], &r[i]));
  json_t *j = json_pack("{s:s, s:s, s:s, s:I, s:o}", "demo", d->name, "device", m->of.device, "name", m->name,
                        "batch", (json_int_t)batch, "rows", rows);
  if (d->same)
    json_object_set_new(j, "equal",
                        json_pack("{s:i, s:i, s:i}", "inputs", (int)e->inputs, "edges", (int)e->edges,
                                  "differ", (int)e->differ));
  if (x->known && x->block_nodes)
    json_object_set_new(j, "block",
                        json_pack("{s:i, s:o, s:o, s:o, s:o}", "nodes", (int)x->block_nodes, "p",
                                  cli_real(x->block_p), "s", cli_real(x->block_s), "predicted_speedup",
                                  cli_real(x->block_predicted), "measured_speedup",
                                  cli_real(x->block_measured)));
  if (x->known)
    json_object_set_new(j, "network",
                        json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "name", d->network, "batch",
                                  (json_int_t)x->batch, "p", cli_real(x->p), "s", cli_real(x->s),
                                  "predicted_speedup", cli_real(x->predicted), "measured_speedup",
                                  cli_real(x->measured), "before_ms", cli_real(x->before_ms), "after_ms",
                                  cli_real(x->after_ms)));
  return cli_print_json(j);
}

static hone_status show(const demo *d, const cli_args *args, const cli_demo_machine *m, int64_t *batch,
                        hone_demo_result *r, prediction *x, cli_demo_equal *e, hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t i = 0; has_row(d, m, i) && status == HONE_OK; i++) {
    status = hone_demo_measure(&m->of, &d->row[i], *batch, d->network && i == 0, NULL, &r[i], error);
    /* The first row is the one that needs most. */
    while (status == HONE_ERROR_MEMORY && i == 0 && *batch > 1) {
      *batch /= 2;
      cli_note("batch %lld does not fit: %lld", (long long)*batch * 2, (long long)*batch);
      status = hone_demo_measure(&m->of, &d->row[i], *batch, d->network && i == 0, NULL, &r[i], error);
    }
    if (status == HONE_OK && i == 0 && !args->json) {
      cli_print("%s\n%s (%s), batch %lld, medians of %u run%s, random data\n\n", d->title, m->name,
                m->of.device, (long long)*batch, m->of.runs, cli_s(m->of.runs));
      if (d->boxes)
        cli_print("%-34s %-5s %6s %9s %9s %9s %9s %7s %7s\n", "", "", "steps", "whole ms", "a second",
                  "boxes ms", "of it", "MB", "");
      else if (d->copies)
        cli_print("%-34s %-5s %9s %9s %7s\n", "", "", "whole ms", "copy ms", "");
      else
        cli_print("%-34s %-5s %6s %9s %8s %9s %8s %7s\n", "", "", "steps", "ms", "TFLOP/s", "MB", "of roof",
                  "");
    }
    /* Rows of another network start a comparison of their own. */
    uint32_t first = i;
    while (first > 0 && strcmp(d->row[first - 1].network, d->row[i].network) == 0) first--;
    if (status == HONE_OK && !args->json)
      print_row(d, m, &d->row[i], &r[i], whole(d) ? r[first].end_ms : r[first].ms);
  }
  if (status == HONE_OK && d->network) status = predict(d, m, r, x, error);
  if (status == HONE_OK && x->known && !args->json)
    cli_print(
        "\n%s, batch %lld: %.0f %% of the separate operators' time is not convolution; %.1f times faster, "
        "as in "
        "the part, Amdahl predicts %.2fx.\nMeasured: %.3f ms -> %.3f ms, %.2fx\n",
        d->network, (long long)x->batch, 100 * x->p, x->s, x->predicted, x->before_ms, x->after_ms,
        x->measured);
  if (status == HONE_OK && x->known && x->block_nodes && !args->json)
    cli_print(
        "The part's own %u operator%s, in the blocks behind the stage's first: %.1f %% of the time; %.2f "
        "times faster, "
        "as in the part, Amdahl predicts %.3fx end to end.\nMeasured: %.3fx, with their steps in the "
        "fused network\n",
        x->block_nodes, cli_s(x->block_nodes), 100 * x->block_p, x->block_s, x->block_predicted,
        x->block_measured);
  if (status == HONE_OK && d->same) status = cli_demo_same(m, d->row, *batch, e, error);
  if (status == HONE_OK && d->same && !args->json) {
    char verdict[32] = "equal to the bit";
    if (e->differ) snprintf(verdict, sizeof verdict, "%u differ", e->differ);
    cli_print("\n%u random inputs, %u of them with zeros, denormals, infinities and NaN: %s\n", e->inputs,
              e->edges, verdict);
  }
  if (status == HONE_OK && d->without && !m->accelerator && !args->json) cli_print("\n%s\n", d->without);
  return status;
}

static int list(const cli_args *args) {
  json_t *names = json_array();
  for (uint32_t i = 0; i < DEMOS; i++) {
    if (args->json)
      json_array_append_new(names, json_pack("{s:s, s:s}", "name", demos[i].name, "about", demos[i].title));
    else
      cli_print("%-14s %s\n", demos[i].name, demos[i].title);
  }
  if (args->json) return cli_print_json(json_pack("{s:o}", "demos", names));
  json_decref(names);
  return cli_flush();
}

static int run(const cli_args *args) {
  const demo *d = NULL;
  const char *names[DEMOS];
  if (!args->rest.n) return list(args);
  for (uint32_t i = 0; i < DEMOS; i++) {
    names[i] = demos[i].name;
    if (strcmp(demos[i].name, args->rest.item[0]) == 0) d = &demos[i];
  }
  if (!d) {
    const char *near = cli_nearest(args->rest.item[0], names, DEMOS);
    return near ? cli_error(HONE_ERROR_USAGE, "no demo is called '%s'; did you mean '%s'?",
                            args->rest.item[0], near)
                : cli_error(HONE_ERROR_USAGE, "no demo is called '%s' (hone demo lists them)",
                            args->rest.item[0]);
  }
  if (d->other) return d->other(args);
  if (args->rest.n > 1 || args->data.n || args->calib)
    return cli_error(HONE_ERROR_USAGE,
                     "hone demo %s has its own networks: a model and its data go with hone demo int8",
                     d->name);
  hone_error error = {0};
  cli_demo_machine m;
  hone_demo_result r[MOST_ROWS] = {0};
  prediction x = {0};
  cli_demo_equal e = {0};
  if (d->copies && strcmp(cli_device_name(args), "cpu") == 0)
    return cli_error(HONE_ERROR_MISSING,
                     "%s needs a GPU: on the processor inputs are read where they lie, and nothing is "
                     "copied (--device cuda)",
                     d->name);
  hone_status status = cli_demo_machine_find(args, &m, &error);
  int64_t batch = args->batch ? args->batch : m.accelerator ? d->device_batch : d->host_batch;
  if (status == HONE_OK) status = show(d, args, &m, &batch, r, &x, &e, &error);
  if (status != HONE_OK) return cli_report(&error);
  const int code = args->json ? finish_json(d, &m, batch, r, &x, &e) : cli_flush();
  return code == 0 && e.differ ? 1 : code;
}

static const cli_option options[] = {
    {0, "device", CLI_TEXT, CLI_FIELD(device), "cpu|cuda", "where to run: cpu, cuda or cuda:N (cpu)"},
    {'b', "batch", CLI_SOME, CLI_FIELD(batch), "N", "batch size (the demo's own)"},
    {0, "size", CLI_SOME, CLI_FIELD(size), "N", "image side (the network's own)"},
    {'n', "runs", CLI_SOME, CLI_FIELD(runs), "N", "measured runs of each line (20)"},
    {'t', "threads", CLI_THREADS, CLI_FIELD(threads), "N", "threads (all processors)"},
    {0, "data", CLI_LIST, CLI_FIELD(data), "PATH", "int8 MODEL: labelled data, as hone eval takes it"},
    {0, "labels", CLI_TEXT, CLI_FIELD(labels), "FILE",
     "of that data, where it does not tell its labels itself"},
    {0, "calib", CLI_TEXT, CLI_FIELD(calib), "DIR|FILE.npz",
     "int8 MODEL: samples for the ranges (some of the data)"},
    CLI_OPT_PREPROCESS,
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_demo = {
    "demo",
    "[NAME [MODEL]]",
    "what fusion, narrow types and better kernels are worth",
    "Without a name the demos are listed. Each line is a part of a network, planned in another way and "
    "measured. \"MB\" counts every tensor as often as a step reads or writes it, \"of roof\" is the time "
    "that the measured peaks allow for that work. On a GPU a line's time is the device's own, with inputs in "
    "place. int8 takes a classifier of yours, with labelled data for its Top-1.",
    options,
    0,
    2,
    run};
