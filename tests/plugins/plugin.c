/* A plugin, sound or broken as the macro of its target says. It has the operator test.Swell, x + scale
 * sin(x), with a tactic and the pattern that spells it out for a scale of 1. */
#include <hone/plugin.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static hone_status infer(const hone_infer *io, hone_error *error) {
  (void)error;
  *io->output[0] = *io->input[0];
  return HONE_OK;
}

static void swell(const float *x, float scale, float *y, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i] + scale * sinf(x[i]);
}

static hone_status reference(hone_call *c, hone_error *error) {
  (void)error;
  swell(c->input[0]->data, hone_node_float(c->node, "scale", 2), c->output[0]->data,
        hone_desc_count(&c->input[0]->desc));
  return HONE_OK;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  (void)m, (void)why;
  return s->n_epilogue == 0;
}

static double cost(const hone_step *s, const hone_machine *m) {
  (void)s, (void)m;
  return 1e-9;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  (void)error;
  swell(r->in[0], hone_node_float(r->step->node, "scale", 2), r->out[0],
        hone_desc_count(&r->step->input[0].desc));
  return HONE_OK;
}

static void once(const hone_match *m, const hone_attr_sink *sink) {
  (void)m;
  sink->set_float(sink->self, "scale", 1);
}

static const hone_attr_desc attrs[] = {{"scale", HONE_ATTR_FLOAT, false, 0, 0}, {NULL, 0, false, 0, 0}};

/* An older form of a descriptor ends earlier; a newer one has members that this hone does not know. */
typedef struct longer_op {
  hone_op_desc op;
  uint64_t more;
} longer_op;

static const longer_op op = {{
#if defined(NEWER) || defined(LONGER)
                                 .struct_size = sizeof(longer_op),
                                 .abi = HONE_PLUGIN_ABI,
#elif defined(SHORT)
                                 .struct_size = 40,
                                 .abi = HONE_PLUGIN_ABI,
#else
                                 HONE_DESC_HEAD(hone_op_desc),
#endif
                                 .domain = "test",
                                 .op_type = "Swell",
                                 .since = 1,
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .min_outputs = 1,
                                 .max_outputs = 1,
                                 .types = HONE_TYPES(HONE_DTYPE_F32),
                                 .attrs = attrs,
                                 .infer = infer,
#ifndef NO_REFERENCE
                                 .reference = reference
#endif
                             },
#ifdef NEWER
                             1
#else
                             0
#endif
};

static const hone_tactic_desc tactic = {HONE_DESC_HEAD(hone_tactic_desc),
                                        .name = "swell_plain",
                                        .device = "cpu",
                                        .anchor = "test.Swell",
                                        .version = 1,
                                        .accepts = accepts,
                                        .cost = cost,
                                        .run = run};
static const hone_pattern_desc pattern = {HONE_DESC_HEAD(hone_pattern_desc), .name = "test.Swell",
#ifdef BAD_PATTERN
                                          .text = "%y = Add(%x",
#else
                                          .text = "%s = Sin(%x)\n%y = Add(%x, %s)",
#endif
                                          .inputs = "%x", .attrs = once};

static const hone_op_desc *const ops[] = {&op.op};
static const hone_tactic_desc *const tactics[] = {&tactic};
static const hone_pattern_desc *const patterns[] = {&pattern};
static const hone_plugin plugin = {HONE_DESC_HEAD(hone_plugin),
#ifdef BAD_NAME
                                   .name = "swell swell",
#else
                                   .name = "swell",
#endif
                                   .version = "1.0.0",
                                   .about = "x + scale sin(x)",
                                   .n_ops = 1,
                                   .n_tactics = 1,
                                   .n_patterns = 1,
                                   .op = ops,
                                   .tactic = tactics,
                                   .pattern = patterns};

#ifdef CRASH
__attribute__((constructor)) static void crash(void) { abort(); }
#endif
#ifdef LEAVE
__attribute__((constructor)) static void leave(void) { _exit(0); }
#endif
#ifdef UNDEFINED
void hone_function_of_a_later_version(void);
#endif

#ifdef NO_ENTRY
const hone_plugin *not_the_entry(uint32_t abi);
#define hone_plugin_entry not_the_entry
#endif
const hone_plugin *hone_plugin_entry(uint32_t abi) {
#ifdef HANG
  for (;;) pause();
#endif
#ifdef UNDEFINED
  hone_function_of_a_later_version();
#endif
#ifdef OTHER_ABI
  static const hone_plugin other = {.struct_size = sizeof other, .abi = HONE_PLUGIN_ABI + 1, .name = "swell"};
  return &other;
#endif
#ifdef DECLINES
  return NULL;
#endif
  return abi == HONE_PLUGIN_ABI ? &plugin : NULL;
}
