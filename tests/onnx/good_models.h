/* Valid models that use every corner of the format. */
#ifndef TESTS_ONNX_GOOD_MODELS_H
#define TESTS_ONNX_GOOD_MODELS_H

#include "onnx/pb.h"

typedef struct good_model {
  const char *name;
  pb *(*make)(void);
} good_model;

extern const good_model good_models[];
extern const size_t n_good_models;

/* The model of that name; NULL: none. */
pb *make_good_model(const char *name);

#endif
