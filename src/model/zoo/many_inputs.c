/* Many small inputs and little work: what copying them to a device one by one costs. */
#include "model/zoo/common/build.h"

#include <stdio.h>

enum { INPUTS = 16 };

static void build(hn_zoo *z) {
  const int64_t n = z->opt.size;
  hn_value *sum = NULL;
  for (int i = 0; i < INPUTS; i++) {
    char name[16];
    snprintf(name, sizeof name, "x%d", i);
    hn_value *x = hn_zoo_input(z, name, HONE_DTYPE_F32, 2, (int64_t[]){z->batch, n});
    sum = sum ? hn_zoo_op(z, "Add", NULL, HN_IN(sum, x)) : x;
  }
  hn_zoo_output(z, sum, 2, (int64_t[]){z->batch, n});
}

const struct hn_zoo_unit hn_zoo_many_inputs = {
    .name = "many_inputs",
    .about = "Sixteen small inputs (1024 numbers each) and their sum",
    .size = 1024,
    .multiple = 1,
    .max_size = 1 << 20,
    .build = build,
};
