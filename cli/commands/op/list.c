/* hone op list: the plugins that are there, what they add, and why one is not used. */
#include "cli/options/options.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"

#include <stdio.h>
#include <string.h>

static const char *const states[] = {"loaded", "disabled", "refused"};

/* "Swish" or "domain.Swish" */
static void op_name(const hone_op_desc *d, char *buf, size_t size) {
  snprintf(buf, size, "%s%s%s", d->domain, *d->domain ? "." : "", d->op_type);
}

static json_t *units_json(const hone_plugin_info *p) {
  json_t *ops = json_array(), *tactics = json_array(), *patterns = json_array();
  const hone_plugin *g = p->plugin;
  char name[300];
  for (uint32_t i = 0; g && i < g->n_ops; i++) {
    op_name(g->op[i], name, sizeof name);
    json_array_append_new(ops, cli_text(name));
  }
  for (uint32_t i = 0; g && i < g->n_tactics; i++)
    json_array_append_new(tactics, json_pack("{s:o, s:o, s:o}", "name", cli_text(g->tactic[i]->name),
                                             "device", cli_text(g->tactic[i]->device), "operator",
                                             cli_text(g->tactic[i]->anchor)));
  for (uint32_t i = 0; g && i < g->n_patterns; i++)
    json_array_append_new(patterns, json_pack("{s:o, s:o}", "operator", cli_text(g->pattern[i]->name), "text",
                                              cli_text(g->pattern[i]->text)));
  return json_pack("{s:o, s:o, s:o}", "operators", ops, "tactics", tactics, "patterns", patterns);
}

static json_t *plugin_json(const hone_plugin_info *p) {
  char why[1200];
  json_t *o = units_json(p);
  if (p->error) (void)hone_error_format(p->error, why, sizeof why);
  json_object_set_new(o, "name", cli_text(p->name));
  json_object_set_new(o, "version", cli_text(p->version));
  json_object_set_new(o, "about", cli_text(p->about));
  json_object_set_new(o, "path", cli_text(p->path));
  json_object_set_new(o, "state", json_string(states[p->state]));
  json_object_set_new(o, "switched_off", json_integer(p->n_off));
  json_object_set_new(o, "why", p->error ? cli_text(why) : json_null());
  return o;
}

static void say(const hone_plugin_info *p) {
  char name[300], why[1200];
  const hone_plugin *g = p->plugin;
  if (p->error) (void)hone_error_format(p->error, why, sizeof why);
  cli_print("%-20s %-9s %-9s %s\n", p->name, *p->version ? p->version : "-", states[p->state], p->path);
  if (*p->about) cli_print("  %s\n", p->about);
  for (uint32_t i = 0; g && i < g->n_ops; i++) {
    op_name(g->op[i], name, sizeof name);
    cli_print("  operator %s\n", name);
  }
  for (uint32_t i = 0; g && i < g->n_tactics; i++)
    cli_print("  tactic   %s of %s on %s\n", g->tactic[i]->name, g->tactic[i]->anchor, g->tactic[i]->device);
  for (uint32_t i = 0; g && i < g->n_patterns; i++)
    cli_print("  pattern  of %s: %.*s%s\n", g->pattern[i]->name, (int)strcspn(g->pattern[i]->text, "\n"),
              g->pattern[i]->text, strchr(g->pattern[i]->text, '\n') ? " ..." : "");
  if (p->error) cli_print("  why: %s\n", why);
  if (p->n_off) cli_print("  %u switched off by --op-disable\n", p->n_off);
}

static int run(const cli_args *args) {
  hone_plugin_info p;
  if (args->json) {
    json_t *list = json_array();
    for (uint32_t i = 0; hone_plugin_at(i, &p); i++) json_array_append_new(list, plugin_json(&p));
    return cli_print_json(json_pack("{s:o}", "plugins", list));
  }
  for (uint32_t i = 0; hone_plugin_at(i, &p); i++) say(&p);
  char folder[1000];
  if (!hone_plugins())
    cli_print("no custom operators (looked in --op-path, HONE_OP_PATH%s%s)\n",
              hone_plugins_folder(folder, sizeof folder) ? " and " : "",
              hone_plugins_folder(folder, sizeof folder) ? folder : "");
  return cli_flush();
}

static const cli_option options[] = {CLI_OPT_JSON, CLI_OPT_HELP, CLI_END};
const cli_command cli_op_list = {
    "op list", "", "which there are, what they add, and why one is not used", NULL, options, 0, 0, run};
