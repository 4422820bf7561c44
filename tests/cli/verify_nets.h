/* Networks that test_verify.c verifies. */
#ifndef HN_TESTS_CLI_VERIFY_NETS_H
#define HN_TESTS_CLI_VERIFY_NETS_H

#include <stdbool.h>

#include "net.h"

/* Residual blocks of 1x1, depthwise 3x3 and 1x1 between QuantizeLinear and DequantizeLinear, as quantisers
 * write them. */
hn_model *verify_quantised_net(void);

/* Right models that looser judges call different: small maps, where one element is a large share. */
enum { VERIFY_RIGHT_NETS = 4 };
extern hn_model *(*const verify_right_nets[VERIFY_RIGHT_NETS])(unsigned seed);

/* Dense layers of 8 bits; the last one's codes are the output. */
typedef enum verify_ends {
  VERIFY_CODES,
  VERIFY_REAL,
  VERIFY_TURNED, /* in another shape */
  VERIFY_TWO     /* and the input's codes */
} verify_ends;

typedef struct verify_renamed {
  bool other; /* names */
  bool wrong; /* the weights of the first layer are negated */
  int layers;
  verify_ends ends;
} verify_renamed;

hn_model *verify_renamed_net(verify_renamed r);

#endif
