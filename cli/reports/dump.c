/* Tensors of named nodes, a .npy file for each side: NODE.SIDE.npy. */
#include "cli/reports/dump.h"

#include "cli/options/files.h"
#include "cli/terminal/interrupts.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static hone_status put(void *arg, uint32_t which, uint32_t output, const char *side, const hone_tensor *t,
                       hone_error *error) {
  cli_dump *d = arg;
  char what[300], name[320], path[4096 + 330];
  if (output)
    snprintf(what, sizeof what, "%.200s.%u.%s", d->dump.names[which], output, side);
  else
    snprintf(what, sizeof what, "%.200s.%s", d->dump.names[which], side);
  cli_array_name(what, d->taken, name, sizeof name);
  snprintf(path, sizeof path, "%s/%s", d->folder, name);
  cli_hold(true);
  const hone_status status = hone_data_save_npy(t, path, error);
  cli_hold(false);
  if (status == HONE_OK)
    json_array_append_new(d->files, json_pack("{s:o, s:i, s:s, s:s}", "node", cli_text(d->dump.names[which]),
                                              "output", (int)output, "side", side, "file", name));
  return status;
}

hone_status cli_dump_open(const cli_args *args, cli_dump *out, hone_error *error) {
  *out = (cli_dump){.args = args, .folder = args->output_dir ? args->output_dir : "."};
  if (!args->dump.n) return HONE_OK;
  const hone_status status = cli_make_folder(out->folder, &out->made, error);
  if (status != HONE_OK) return status;
  out->dump = (hone_dump){.names = args->dump.item, .n = (uint32_t)args->dump.n, .put = put, .arg = out};
  out->files = json_array();
  out->taken = json_object();
  return HONE_OK;
}

const hone_dump *cli_dump_of(const cli_dump *d) { return d->files ? &d->dump : NULL; }

static bool has(const cli_dump *d, const char *node, const char *side) {
  size_t i;
  json_t *f;
  json_array_foreach(d->files, i, f) {
    if (strcmp(json_string_value(json_object_get(f, "node")), node) == 0 &&
        strcmp(json_string_value(json_object_get(f, "side")), side) == 0)
      return true;
  }
  return false;
}

void cli_dump_say(const cli_dump *d) {
  size_t i;
  json_t *f;
  json_array_foreach(d->files, i, f) {
    cli_print("wrote %s/%s\n", d->folder, json_string_value(json_object_get(f, "file")));
  }
  for (uint32_t k = 0; d->files && k < d->dump.n; k++)
    if (has(d, d->dump.names[k], "reference") && !has(d, d->dump.names[k], "optimized"))
      cli_print("'%s' has no value of its own as hone runs it: it is inside of a fused step, or a pass has "
                "replaced it\n",
                d->dump.names[k]);
}

void cli_dump_close(cli_dump *d, bool whole) {
  size_t i;
  json_t *f;
  if (!d->files) return;
  if (!whole) {
    json_array_foreach(d->files, i, f) {
      char path[4096 + 330];
      snprintf(path, sizeof path, "%s/%s", d->folder, json_string_value(json_object_get(f, "file")));
      unlink(path);
    }
    cli_drop_folder(d->folder, d->made);
  }
  json_decref(d->files);
  json_decref(d->taken);
  *d = (cli_dump){0};
}
