/* The definition of a custom operator: NAME.json, in the form of msopgen's (op, input_desc, output_desc,
 * attr) with what hone adds: domain, since, about, version, kind, functions, pattern, tile, tolerance. */
#ifndef HONE_CLI_OP_DEFINITION_H
#define HONE_CLI_OP_DEFINITION_H

#include <hone/hone.h>

enum { OP_OPERANDS = 16, OP_ATTRS = 16, OP_PATTERNS = 8, OP_TILES = 8 };

typedef enum op_kind {
  OP_ELEMENTWISE, /* every output element from the input elements at its place, all of one shape */
  OP_GENERAL
} op_kind;

/* What NAME_ref.c has beside the functions that every general operator needs. */
enum {
  OP_HAS_NEED = 1u << 0,    /* NAME_need: bytes of packed constants and of workspace */
  OP_HAS_PREPACK = 1u << 1, /* NAME_prepack: writes the packed constants, once */
  OP_HAS_COUNT = 1u << 2    /* NAME_count: the operations of a run */
};

typedef enum op_shape {
  OP_SHAPE_OF,        /* that of input `of` */
  OP_SHAPE_BROADCAST, /* of all inputs together, as ONNX's Add does it */
  OP_SHAPE_FUNCTION   /* NAME_shape in NAME_ref.c says it */
} op_shape;

typedef struct op_operand {
  const char *name;
  bool optional;
  uint32_t types; /* HONE_TYPES bits */
  op_shape shape; /* outputs */
  uint32_t of;
  /* Of 8-bit codes: 1 + the inputs with their scale and zero point; 0: none. */
  uint32_t scale, zero;
  bool measure;        /* it is such an input: no operand of the kernels */
  const char *example; /* "2x8x16": dimensions to try it with; NULL: none */
} op_operand;

typedef struct op_attr {
  const char *name;
  hone_attr_type type; /* INT, FLOAT, STRING, INTS, FLOATS */
  bool required;
  const char *otherwise; /* as C has it: "1.0f", "2", "\"linear\""; NULL: required, or a list */
} op_attr;

typedef struct op_pattern {
  const char *text, *inputs;
  const char *settings; /* attributes that the pattern gives to its operator; NULL: none */
} op_pattern;

typedef struct op_definition {
  void *memory; /* what all strings lie in */
  char folder[4000];
  const char *file; /* the JSON file's name */
  const char *stem; /* "swish": of files and functions */
  const char *op, *domain, *about, *version;
  int since;
  op_kind kind;
  uint32_t n_in, n_out, n_attrs, n_patterns;
  op_operand in[OP_OPERANDS], out[OP_OPERANDS];
  op_attr attr[OP_ATTRS];
  op_pattern pattern[OP_PATTERNS];
  uint32_t functions; /* OP_HAS bits */
  uint32_t n_tiles;
  int tile[OP_TILES]; /* values of HONE_TILE, each a tactic of its own; none: kernels have no tile */
  double tolerance;   /* of f32 results, relative; 0: none given */
} op_definition;

/* Reads FOLDER/NAME.json; folder may also name the file. Errors name the file with line and column. Free with
 * op_definition_free. */
hone_status op_definition_read(const char *folder, op_definition *out, hone_error *error);
void op_definition_free(op_definition *d);

/* Does it work on codes, too? */
bool op_has_codes(const op_definition *d);
/* Is it a word that C takes as a name? */
bool op_is_name(const char *word);
#define OP_NAME "letters, digits and '_', no digit first, at most 60"

#endif
