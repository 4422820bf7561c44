/* fuzz_seeds TARGET FOLDER: writes starting inputs for a fuzz target, from the ONNX test data where it is
 * installed. */
#include "fuzz/seeds_data.h"
#include "fuzz/seeds_onnx.h"
#include "insight/sample.h"

#include "model/ir/text.h"
#include "model/onnx/onnx.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void copy(const char *from, const char *folder, size_t i) {
  hn_file f;
  char to[512];
  if (hn_file_map(from, NULL, HN_FILE_DATA, &f, NULL) != HONE_OK) return;
  snprintf(to, sizeof to, "%s/seed%zu", folder, i);
  if (f.size < 65536) hn_file_write(to, f.data, f.size, NULL);
  hn_file_unmap(&f);
}

static void print_model(const char *from, const char *folder, size_t i) {
  hn_model *m = NULL;
  hn_str s = {0};
  char to[512];
  snprintf(to, sizeof to, "%s/seed%zu", folder, i);
  if (hn_onnx_load(from, &m, NULL) == HONE_OK && hn_model_print(m, NULL, &s) && s.len < 65536)
    hn_file_write(to, s.ptr, s.len, NULL);
  hn_str_free(&s);
  hn_model_destroy(m);
}

/* The small files of the importers' tests. */
static int seeds_import(const char *format, const char *folder) {
  char pattern[256] = "tests/importers/golden/*";
  glob_t g;
  if (strcmp(format, "hone") != 0) snprintf(pattern, sizeof pattern, "tests/importers/data/%s/*", format);
  if (glob(pattern, 0, NULL, &g) != 0) return 0;
  for (size_t i = 0; i < g.gl_pathc; i++) copy(g.gl_pathv[i], folder, i);
  globfree(&g);
  return 0;
}

/* Requests of hone serve; the bytes before them are fuzz_serve.c's. */
static int seeds_serve(const char *folder) {
  static const char *const body[] = {
      "\0\0\0{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,3],\"data\":[1,-2.5e-3,NaN]}]}",
      "\0\0\0{\"id\":\"a\",\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2,3],\"data\":[[1,2,"
      "3],[4,5,6]]}],"
      "\"outputs\":[{\"name\":\"y\",\"parameters\":{\"classification\":2,\"binary_data\":true}}]}",
      "\2\0\0{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,3],\"data\":[1,2,3]},{\"name\":"
      "\"i\","
      "\"datatype\":\"INT64\",\"shape\":[2],\"data\":[-1,7]},{\"name\":\"s\",\"datatype\":\"BYTES\","
      "\"shape\":[1],\"data\":[\"\\u00fc]\"]}]}",
      "\200\170\0{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,3],\"parameters\":{\"binary_"
      "data_size\":12}}],"
      "\"parameters\":{\"a\":0}}     0123456789ab"};
  for (size_t i = 0; i < sizeof body / sizeof *body; i++) {
    char to[512];
    snprintf(to, sizeof to, "%s/seed%zu", folder, i);
    hn_file_write(to, body[i], 3 + strlen(body[i] + 3), NULL);
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: fuzz_seeds TARGET FOLDER\n"), 2;
  const char *target = argv[1], *folder = argv[2];
  if (strcmp(target, "fuzz_serve") == 0) return seeds_serve(folder);
  if (strcmp(target, "fuzz_facts") == 0) {
    for (int level = 0; level <= 2; level += 2) {
      char to[512], *text = NULL;
      size_t length;
      hone_facts *f = sample_facts(level);
      snprintf(to, sizeof to, "%s/seed%d", folder, level);
      if (f && hone_facts_to_json(f, &text, &length, NULL) == HONE_OK) hn_file_write(to, text, length, NULL);
      free(text);
      hone_facts_destroy(f);
    }
    return 0;
  }
  if (strncmp(target, "fuzz_import_", 12) == 0) return seeds_import(target + 12, folder);
  if (strcmp(target, "fuzz_data") == 0) {
    seeds_data(folder);
    return 0;
  }
  if (strcmp(target, "fuzz_onnx") == 0) seeds_onnx(folder);
  bool tensor = strcmp(target, "fuzz_tensor") == 0;
  glob_t g;
  if (glob(tensor ? "/usr/share/libonnx-testdata/data/node/*/test_data_set_0/input_0.pb"
                  : "/usr/share/libonnx-testdata/data/node/*/model.onnx",
           0, NULL, &g) != 0)
    return 0;
  for (size_t i = 0; i < g.gl_pathc; i += tensor ? 7 : 2) {
    if (strcmp(target, "fuzz_text") == 0)
      print_model(g.gl_pathv[i], folder, i);
    else
      copy(g.gl_pathv[i], folder, i);
  }
  globfree(&g);
  return 0;
}
