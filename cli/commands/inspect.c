/* hone inspect: what a model is and costs, without running it. */
#include "cli/reports/inspect.h"
#include "cli/options/options.h"
#include "cli/options/shapes.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *port_json(const hone_port *port, const hone_bound_shape *bound) {
  if (port->optional) bound = NULL; /* its initializer has the shape */
  json_t *o = cli_desc_json(bound ? &bound->desc : &port->desc);
  json_object_set_new(o, "name", json_string(port->name));
  json_t *symbols = json_array();
  for (int32_t k = 0; k < port->desc.rank; k++)
    json_array_append_new(symbols, port->symbol[k] ? json_string(port->symbol[k]) : json_null());
  json_object_set_new(o, "symbols", symbols);
  if (bound) json_object_set_new(o, "chosen", json_boolean(bound->chosen));
  if (port->optional) json_object_set_new(o, "optional", json_true());
  return o;
}

/* Rows of input 0: what a throughput counts. */
static int64_t rows_of(const hone_bound_shape *bound) {
  const int64_t n = bound->input && bound->desc.rank > 0 ? bound->desc.dim[0] : 1;
  return n > 0 ? n : 1;
}

static json_t *bound_json(const cli_roof_peaks *peaks, const hone_node_info *n) {
  const cli_bound b = cli_bound_of(peaks, n);
  return b == CLI_BOUND_COMPUTE || b == CLI_BOUND_MEMORY ? json_string(cli_bound_name(b)) : json_null();
}

static json_t *roof_json(const cli_roof_peaks *peaks, const hone_node_info *n) {
  if (cli_bound_of(peaks, n) == CLI_BOUND_UNKNOWN) return json_null();
  return cli_real(cli_roof_ms(peaks, n->dtype, n->flops, n->bytes_read + n->bytes_written));
}

static json_t *document(const char *path, const hone_model *model, const hone_model *bound_model,
                        const hone_bound_shape *bound, const hone_inspection *in, const cli_analysis *a) {
  json_t *inputs = json_array(), *outputs = json_array(), *nodes = json_array();
  hone_port port;
  for (uint32_t i = 0; hone_model_input(model, i, &port); i++)
    json_array_append_new(inputs, port_json(&port, &bound[i]));
  for (uint32_t i = 0; hone_model_output(bound_model, i, &port); i++) {
    if (i < in->n_outputs) port.desc = in->outputs[i];
    json_array_append_new(outputs, port_json(&port, NULL));
  }
  for (uint32_t i = 0; i < in->n_nodes; i++) {
    const hone_node_info *n = &in->nodes[i];
    json_array_append_new(
        nodes,
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "name", n->name,
                  "type", n->op_type, "shape", n->shape, "dtype", hone_dtype_name(n->dtype), "flops",
                  cli_real(n->flops), "macs", cli_real(n->macs), "params", cli_real(n->params), "bytes",
                  cli_real(n->bytes_read + n->bytes_written), "bytes_read", cli_real(n->bytes_read),
                  "bytes_written", cli_real(n->bytes_written), "intensity", cli_real(n->intensity), "bound",
                  bound_json(&a->peaks, n), "roof_ms", roof_json(&a->peaks, n), "quantisation",
                  hone_quantisation_name(hone_quantisation_of(n->op_type))));
  }
  json_t *totals = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "flops", cli_real(in->flops), "macs",
                             cli_real(in->macs), "params", cli_real(in->params), "param_bytes",
                             cli_real(in->param_bytes), "bytes", cli_real(in->bytes), "intensity",
                             cli_real(in->bytes > 0 ? in->flops / in->bytes : 0), "peak_memory_bytes",
                             cli_real(in->peak_memory_bytes), "nodes", (json_int_t)in->n_nodes);
  json_t *doc =
      json_pack("{s:s, s:I, s:I, s:s, s:o, s:o, s:o, s:o}", "model", path, "ir_version",
                (json_int_t)hone_model_ir_version(model), "opset", (json_int_t)hone_model_opset(model),
                "producer", hone_model_producer(model) ? hone_model_producer(model) : "", "inputs", inputs,
                "outputs", outputs, "totals", totals, "nodes", nodes);
  cli_analysis_json(a, in, rows_of(bound), doc);
  return doc;
}

/* `known`: what is known of outputs once all defaults are bound. */
static void ports_text(const hone_model *model, const hone_bound_shape *bound, const hone_tensor_desc *known,
                       bool inputs) {
  hone_port port;
  char text[128];
  uint32_t optional = 0;
  for (uint32_t i = 0; inputs ? hone_model_input(model, i, &port) : hone_model_output(model, i, &port); i++) {
    if (port.optional) { /* old exporters list every weight */
      optional++;
      continue;
    }
    cli_print("%-9s %s  %s%s\n",
              i        ? ""
              : inputs ? "inputs"
                       : "outputs",
              port.name,
              hone_desc_format(bound   ? &bound[i].desc
                               : known ? &known[i]
                                       : &port.desc,
                               text, sizeof text),
              bound && bound[i].chosen ? "  (chosen; --shape changes it)" : "");
  }
  if (optional) cli_print("%-9s and %u that have an initializer\n", "", optional);
}

static void text(const cli_args *args, const char *path, const hone_model *model,
                 const hone_model *bound_model, const hone_bound_shape *bound, const hone_inspection *in,
                 const cli_analysis *analysis) {
  char a[24], b[24], c[24], d[24];
  const char *producer = hone_model_producer(model);
  cli_print("%-9s %s  (IR %lld, opset %lld, %s, %u node%s)\n", "model", path,
            (long long)hone_model_ir_version(model), (long long)hone_model_opset(model),
            producer && *producer ? producer : "producer not named", in->n_nodes, cli_s(in->n_nodes));
  ports_text(model, bound, NULL, true);
  ports_text(bound_model, NULL, in->outputs, false);
  uint32_t rows = args->rows ? (uint32_t)args->rows : in->n_nodes;
  cli_print("\n%-32s %-20s %-20s %8s %8s %8s %9s %9s %s\n", "node", "type", "output", "FLOP", "MAC", "params",
            "bytes", "FLOP/byte", "bound");
  for (uint32_t i = 0; i < in->n_nodes && i < rows; i++) {
    const hone_node_info *n = &in->nodes[i];
    cli_print("%-32.32s %-20.20s %-20.20s %8s %8s %8s %9s %9.2f %s\n", n->name, n->op_type, n->shape,
              cli_si(n->flops, a), cli_si(n->macs, b), cli_si(n->params, c),
              cli_si(n->bytes_read + n->bytes_written, d), n->intensity,
              cli_bound_name(cli_bound_of(&analysis->peaks, n)));
  }
  if (rows < in->n_nodes) cli_print("... and %u more\n", in->n_nodes - rows);
  uint32_t open = 0;
  for (uint32_t i = 0; i < in->n_nodes; i++) open += strchr(in->nodes[i].shape, '?') != NULL;
  cli_print("\n%-22s %sFLOP, %sMAC\n", "work", cli_si(in->flops, a), cli_si(in->macs, b));
  if (open)
    cli_print(
        open == 1
            ? "%-22s %u node has a shape that only a run tells: what it costs is not in these figures\n"
            : "%-22s %u nodes have shapes that only a run tells: what they cost is not in these figures\n",
        "not counted", open);
  cli_print("%-22s %s (%s)\n", "parameters", cli_si(in->params, a), cli_bytes(in->param_bytes, b));
  cli_print("%-22s %sB read and written\n", "memory access", cli_si(in->bytes, a));
  cli_print("%-22s %.2f FLOP/byte\n", "arithmetic intensity", in->bytes > 0 ? in->flops / in->bytes : 0.0);
  cli_print("%-22s %s (largest sum of live tensors, weights included)\n", "peak memory",
            cli_bytes(in->peak_memory_bytes, a));
  cli_analysis_text(analysis, in, rows_of(bound), (uint32_t)args->rows);
}

static int run(const cli_args *args) {
  const char *path = args->rest.item[0];
  hone_model *model = NULL, *bound_model = NULL;
  hone_binding *bindings = NULL;
  hone_bound_shape *bound = NULL;
  hone_inspection in = {0};
  cli_analysis analysis = {0};
  hone_error error = {0};
  uint32_t n = 0;
  int code = 0;
  hone_status status = cli_load(args, path, &model, &error);
  if (status == HONE_OK) status = cli_bindings(args, model, &bindings, &n, &error);
  if (status == HONE_OK) {
    bound = calloc(hone_model_inputs(model) + 1, sizeof *bound);
    if (!bound) {
      code = cli_error(HONE_ERROR_MEMORY, "out of memory");
      goto done;
    }
    status = hone_model_bind(model, bindings, n, args->batch, &bound_model, bound, &error);
  }
  if (status == HONE_OK) status = hone_model_inspect(bound_model, &in, &error);
  if (status == HONE_OK) status = cli_analyse(args, model, bindings, n, &analysis, &error);
  if (status != HONE_OK) {
    code = cli_report(&error);
  } else if (args->json) {
    code = cli_print_json(document(path, model, bound_model, bound, &in, &analysis));
  } else {
    text(args, path, model, bound_model, bound, &in, &analysis);
    code = cli_flush();
  }
done:
  cli_analysis_free(&analysis);
  hone_inspection_free(&in);
  free(bound);
  free(bindings);
  hone_model_release(bound_model);
  hone_model_release(model);
  return code;
}

static const cli_option options[] = {
    CLI_OPT_SHAPES,
    {'t', "threads", CLI_THREADS, CLI_FIELD(threads), "N", "threads of the roofs (all processors)"},
    {0, "device", CLI_TEXT, CLI_FIELD(device), "cpu|cuda",
     "whose roofs and fusions: cpu, cuda or cuda:N (cpu)"},
    {0, "profile", CLI_TEXT, CLI_FIELD(profile), "FILE", "a profile of it: measured stages and throughput"},
    {0, "rows", CLI_COUNT, CLI_FIELD(rows), "N", "print at most N nodes (all)"},
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_inspect = {
    "inspect",
    "MODEL",
    "count FLOPs, bytes and memory; bounds, fusions, 8 bits",
    "Nothing is run. Dimensions that the model leaves open get defaults, which are shown: batch 1, image "
    "sides 224, others 128; --shape and --batch change them. The roofs that nodes are held against are "
    "measured once (hone device) and cached.",
    options,
    1,
    1,
    run};
