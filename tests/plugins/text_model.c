/* text_model TEXT FILE: the network that the text (model/ir/text.h) says, as an ONNX file. */
#include "net.h"

#include <hone/model.h>
#include <stdio.h>

int main(int argc, char **argv) {
  hone_error e = {0};
  if (argc != 3) return 2;
  hn_model *m = net_parse(argv[2], argv[1]);
  const hone_status status = hone_model_save(m, argv[2], &e);
  if (status != HONE_OK) fprintf(stderr, "%s\n", e.what);
  hone_model_release(m);
  return status != HONE_OK;
}
