/* What to type: actions.def's texts with their placeholders filled in, for the very case that was profiled.
 */
#include "base/text.h"
#include "insight/diagnose/rule.h"

#include <stdlib.h>
#include <string.h>

const char *hn_shell_word(hn_diagnosis *d, const char *text) {
  const size_t size = hn_text_shell(text, NULL, 0) + 1;
  char *word = hn_arena_alloc(d->arena, size);
  if (!word) {
    d->failed = true;
    return "";
  }
  hn_text_shell(text, word, size);
  return word;
}

/* As a string of Python. */
static const char *python_text(hn_diagnosis *d, const char *text) {
  const char *out = "'";
  for (size_t n; *text; text += n + (text[n] != 0)) {
    n = strcspn(text, "'\\");
    out = text[n] ? hn_say(d, "%s%.*s\\%c", out, (int)n, text, text[n]) : hn_say(d, "%s%s", out, text);
  }
  return hn_say(d, "%s'", out);
}

/* Commands of hone with the options of the profiled run that they take, too. */
static const struct {
  const char *name, *options;
} commands[] = {
#define COMMAND(name, options) {#name, " " options " "},
#define ROW(action, tool, when, purpose, text, zh)
#include "insight/diagnose/actions.def"
#undef ROW
#undef COMMAND
};

/* Below it a graph is not fused yet: what rewrites it must not be held there. */
enum { DEFAULT_LEVEL = 2 };

/* " word " is one of the words of a text with spaces at both ends. */
static bool has_word(const char *words, const char *word) {
  const size_t n = strlen(word);
  if (!n || strchr(word, ' ')) return false;
  for (const char *at = words; (at = strstr(at, word)); at++)
    if (at > words && at[-1] == ' ' && (at[n] == ' ' || !at[n])) return true;
  return false;
}

static bool spelled(hn_diagnosis *d, const char *text, const char *option) {
  static const struct {
    const char *option, *letter;
  } letters[] = {{"threads", "-t"}, {"batch", "-b"}, {"input", "-i"}};
  for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
    if (strcmp(letters[i].option, option) == 0 && has_word(text, letters[i].letter)) return true;
  return has_word(text, hn_say(d, "--%s", option));
}

/* A shape for another batch: where its first dimension is the batch that was run, n stands there. */
static const char *with_batch(hn_diagnosis *d, const char *shape, double n) {
  const char *dims = strrchr(shape, '=');
  if (!dims) return shape;
  char *end;
  const double first = strtod(++dims, &end);
  if ((*end != 'x' && *end != 'X' && *end != ',') || first != hone_facts_get_meta(d->facts)->batch)
    return shape;
  return hn_say(d, "%.*s%.0f%s", (int)(dims - shape), shape, n, end);
}

/* " --NAME VALUE" of one option of the profiled run, in a command that takes `accepted` and is `text` so far;
 * "" where it has no place there. */
static const char *option_text(hn_diagnosis *d, const char *text, const char *accepted, const char *name,
                               const char *value, double n) {
  const bool other_batch = spelled(d, text, "batch"), rewrites = has_word(text, "optimize");
  /* An input file has the batch that it has; the shape that it settled also serves commands that read none.
   */
  const bool reads = has_word(accepted, "input") && !other_batch;
  if (strcmp(name, "input") == 0 && !reads) return "";
  if (strcmp(name, "input_shape") == 0) {
    if (reads) return "";
    name = "shape";
  }
  if (!has_word(accepted, name) || spelled(d, text, name)) return "";
  if (strcmp(name, "budget") == 0 && spelled(d, text, "precision")) return "";
  if (strcmp(name, "level") == 0 && rewrites && value && strtod(value, NULL) < DEFAULT_LEVEL) return "";
  if (!value) return hn_say(d, " --%s", name);
  if (strcmp(name, "shape") == 0 && other_batch) value = with_batch(d, value, n);
  return hn_say(d, " --%s %s", name, hn_shell_word(d, value));
}

/* Options that make a command of hone run what was profiled. Of another tool's profile only what its record
 * says: a GPU of NVIDIA's, the batch. */
static const char *run_options(hn_diagnosis *d, const char *text, double n) {
  const hone_facts_meta *m = hone_facts_get_meta(d->facts);
  const char *accepted = "", *out = "";
  const char *hone = strstr(text, "hone ");
  for (size_t i = 0; hone && i < sizeof commands / sizeof *commands; i++)
    if (strncmp(hone + 5, commands[i].name, strlen(commands[i].name)) == 0) accepted = commands[i].options;
  const bool own = d->tool == HN_TOOL_HONE, cuda = m->backend && strncmp(m->backend, "cuda", 4) == 0;
  if (m->backend && (own ? strcmp(m->backend, "cpu") != 0 : cuda))
    out = option_text(d, text, accepted, "device", own ? m->backend : "cuda", n);
  if (!own)
    return m->batch > 1 ? hn_say(d, "%s%s", out,
                                 option_text(d, text, accepted, "batch", hn_say(d, "%.0f", m->batch), n))
                        : out;
  size_t count;
  const hone_note *o = hone_facts_options(d->facts, &count);
  for (size_t i = 0; i < count; i++)
    if (o[i].what) out = hn_say(d, "%s%s", out, option_text(d, text, accepted, o[i].what, o[i].text, n));
  return out;
}

/* The ONNX node behind another tool's layer, by which hone finds it in the model. */
static const char *node_of(const hn_diagnosis *d, const char *layer) {
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (strcmp(d->p->layers[i].name, layer) == 0 && d->p->layers[i].onnx_node_count)
      return d->p->layers[i].onnx_nodes[0];
  return layer;
}

const char *hn_function_of(hn_diagnosis *d, const char *name) {
  char *plain = hn_arena_alloc(d->arena, strlen(name) + 1), *word = plain;
  size_t n = 0;
  int depth = 0;
  if (!plain) {
    d->failed = true;
    return name;
  }
  for (const char *p = name; *p; p++) {
    const bool opens = strchr("<({", *p), closes = strchr(">)}", *p);
    depth -= closes && depth;
    if (!depth && !opens && !closes) plain[n++] = *p;
    depth += opens;
  }
  while (n && plain[n - 1] == ' ') n--;
  plain[n] = 0;
  for (char *p = plain; *p; p++)
    if ((*p == ' ' || *p == ':') && p[1]) word = p + 1;
  return *word ? word : name;
}

static bool is_onnx(const char *model) {
  const size_t end = strlen(model);
  return strncmp(model, "zoo:", 4) == 0 || (end > 5 && strcmp(model + end - 5, ".onnx") == 0);
}

/* The model that was quantised, where its profile came along. */
static const char *float_model(hn_diagnosis *d) {
  const char *model = d->float_profile ? hone_facts_get_meta(d->float_profile->facts)->model : NULL;
  return model && is_onnx(model) ? hn_shell_word(d, model) : "FLOAT.onnx";
}

/* What a placeholder of actions.def stands for; NULL: it is none. */
static const char *placeholder(hn_diagnosis *d, const char *text, const char *name, size_t length,
                               const char *layer, double n) {
  const hone_facts_meta *m = hone_facts_get_meta(d->facts);
  const char *model = m->model ? m->model : "";
#define IS(word) (length == sizeof(word) - 1 && strncmp(name, word, length) == 0)
  const bool onnx = is_onnx(model);
  if (IS("model")) return d->model;
  if (IS("onnx")) return onnx ? d->model : "MODEL.onnx";
  if (IS("float")) return float_model(d);
  if (IS("file")) return python_text(d, onnx ? model : "MODEL.onnx");
  if (IS("run")) return run_options(d, text, n);
  if (IS("layer")) {
    const bool translate = d->tool != HN_TOOL_HONE && strncmp(text, "hone ", 5) == 0;
    return hn_shell_word(d, !layer ? "*" : translate ? node_of(d, layer) : layer);
  }
  if (IS("kernel")) return hn_shell_word(d, layer ? hn_function_of(d, layer) : "*");
  if (IS("n")) return hn_say(d, "%.0f", n);
#undef IS
  return NULL;
}

static const char *fill_in(hn_diagnosis *d, const char *whole, const char *layer, double n) {
  const char *out = "", *text = whole;
  while (*text) {
    size_t plain = strcspn(text, "{"), length = text[plain] ? strcspn(text + plain + 1, "}") : 0;
    const char *value = text[plain] ? placeholder(d, whole, text + plain + 1, length, layer, n) : "";
    if (!value) { /* a brace of the command itself */
      value = "{";
      length = 0;
      out = hn_say(d, "%s%.*s%s", out, (int)plain, text, value);
      text += plain + 1;
      continue;
    }
    out = hn_say(d, "%s%.*s%s", out, (int)plain, text, value);
    text += plain + (text[plain] ? length + 2 : 0);
  }
  return out;
}

/* Conditions of actions.def that hold of this profile. */
static unsigned conditions(const hn_diagnosis *d) {
  const char *flags = hone_facts_get_meta(d->facts)->flags;
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(d->facts, &n);
  bool shaped = false;
  for (size_t i = 0; i < n && !shaped; i++)
    shaped = steps[i].shape_in || steps[i].shape_out || steps[i].dtype;
  return 1u << HN_WHEN_ALWAYS | 1u << (hn_on_accelerator(d) ? HN_WHEN_GPU : HN_WHEN_CPU) |
         1u << (hn_has_timeline(d) ? HN_WHEN_TIMED : HN_WHEN_UNTIMED) |
         1u << (shaped ? HN_WHEN_SHAPED : HN_WHEN_UNSHAPED) |
         (unsigned)!(flags && strstr(flags, "with_stack")) << HN_WHEN_NO_STACKS;
}

/* Does the first dimension of the network's inputs count steps of time rather than samples? ONNX's recurrent
 * operators have it so. */
static bool is_recurrent(const hn_diagnosis *d) {
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const char *type = d->p->layers[i].type;
    if (strcmp(type, "LSTM") == 0 || strcmp(type, "GRU") == 0 || strcmp(type, "RNN") == 0) return true;
  }
  return false;
}

void hn_finding_do(hn_diagnosis *d, hn_action action, const char *layer, double n) {
  const char *text;
  hone_purpose purpose;
  double fixed = 0;
  const unsigned hold = conditions(d);
  if (action == HN_DO_BATCH && hn_counter(d, "batch_fixed", -1, &fixed) && fixed > 0) {
    if (is_recurrent(d)) return;
    action = HN_DO_REBATCH;
  }
  for (int i = 0; (text = hn_action_text(d->tool, action, hold, i, d->language, &purpose)); i++) {
    const char *command = fill_in(d, text, layer, n);
    bool known = false;
    for (size_t k = 0; k < d->commands.len; k++) known = known || strcmp(d->commands.ptr[k], command) == 0;
    if (!known && (!hn_vec_push(&d->commands, command) || !hn_vec_push(&d->purposes, purpose)))
      d->failed = true;
  }
}
