/* text_model TEXT FILE: the network that the text (model/ir/text.h) says, as an ONNX file; - is the text on
 * standard input. Operators of the plugins in HONE_OP_PATH may be in it. */
#include "base/str.h"
#include "net.h"

#include <hone/model.h>
#include <hone/plugins.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  hone_error e = {0};
  if (argc != 3) return 2;
  const char *path = getenv("HONE_OP_PATH");
  if (path && hone_plugins_load(&(hone_plugins_options){.path = path}, &e) != HONE_OK) {
    fprintf(stderr, "%s\n", e.what);
    return 1;
  }
  hone_plugin_info p;
  for (uint32_t i = 0; path && hone_plugin_at(i, &p); i++)
    if (p.error) fprintf(stderr, "%s: %s\n", p.path, p.error->what);
  hn_str given = {0};
  if (strcmp(argv[1], "-") == 0)
    for (int c; (c = getchar()) != EOF;) hn_str_putc(&given, (char)c);
  hn_model *m = net_parse(argv[2], given.ptr ? given.ptr : argv[1]);
  hn_str_free(&given);
  const hone_status status = hone_model_save(m, argv[2], &e);
  if (status != HONE_OK) fprintf(stderr, "%s\n", e.what);
  hone_model_release(m);
  return status != HONE_OK;
}
