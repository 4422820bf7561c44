/* The units that extend hone: operators, tactics and patterns, and plugins, the shared libraries that add
 * some. Built-in ones use exactly these descriptors.
 *
 * Every descriptor starts with struct_size and abi; set them with HONE_DESC_HEAD(type), and leave what is not
 * needed zero: a later hone may know more members than the one that a plugin was compiled with. Descriptors
 * are static const data, valid as long as the plugin is loaded; hone never frees them. */
#ifndef HONE_PLUGIN_H
#define HONE_PLUGIN_H

#include <hone/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HONE_DESC_HEAD(type) .struct_size = sizeof(type), .abi = HONE_PLUGIN_ABI

/* ---------------------------------------------------------------- operator instances */

/* One node of a model: operator, attributes, arity. Opaque; lives as long as its model. */
typedef struct hone_node hone_node;

HONE_API const char *hone_node_op(const hone_node *node);     /* "Conv" */
HONE_API const char *hone_node_domain(const hone_node *node); /* "" for ONNX's own */
HONE_API const char *hone_node_name(const hone_node *node); /* never NULL; made up when the model has none */
HONE_API int32_t hone_node_opset(const hone_node *node);    /* imported version of the node's domain */
HONE_API uint32_t hone_node_inputs(const hone_node *node);
HONE_API uint32_t hone_node_outputs(const hone_node *node);

/* Attributes. The default is returned when the attribute is absent (its type was checked at load). Lists are
 * borrowed from the model; *count is 0 and NULL is returned when absent. */
HONE_API bool hone_node_has(const hone_node *node, const char *attr);
HONE_API int64_t hone_node_int(const hone_node *node, const char *attr, int64_t otherwise);
HONE_API float hone_node_float(const hone_node *node, const char *attr, float otherwise);
HONE_API const char *hone_node_string(const hone_node *node, const char *attr, const char *otherwise);
HONE_API const int64_t *hone_node_ints(const hone_node *node, const char *attr, size_t *count);
HONE_API const float *hone_node_floats(const hone_node *node, const char *attr, size_t *count);
HONE_API const hone_string *hone_node_strings(const hone_node *node, const char *attr, size_t *count);
HONE_API const hone_tensor *hone_node_tensor(const hone_node *node, const char *attr);

/* ---------------------------------------------------------------- operators */

typedef enum hone_attr_type {
  HONE_ATTR_NONE = 0,
  HONE_ATTR_FLOAT = 1, /* the numbers are those of ONNX AttributeProto.AttributeType */
  HONE_ATTR_INT = 2,
  HONE_ATTR_STRING = 3,
  HONE_ATTR_TENSOR = 4,
  HONE_ATTR_GRAPH = 5,
  HONE_ATTR_FLOATS = 6,
  HONE_ATTR_INTS = 7,
  HONE_ATTR_STRINGS = 8,
  HONE_ATTR_TENSORS = 9,
  HONE_ATTR_GRAPHS = 10,
  HONE_ATTR_TYPE = 13 /* read by hone_node_int, as a hone_dtype */
} hone_attr_type;

/* An attribute that an operator knows; a node with any other is refused by name. */
typedef struct hone_attr_desc {
  const char *name; /* NULL ends the table */
  hone_attr_type type;
  bool required;
  int16_t since, until; /* opset range in which it exists; 0: open */
} hone_attr_desc;

/* What shape and dtype inference and the cost function see. Dimensions may be unknown (< 0) and rank may be
 * -1. */
typedef struct hone_infer {
  const hone_node *node;
  uint32_t n_inputs, n_outputs;
  const hone_tensor_desc *const *input; /* [n_inputs]; NULL entry: optional input left out */
  const hone_tensor *const
      *value; /* [n_inputs]; row-major value where it is known beforehand, else NULL entry */
  hone_tensor_desc *const
      *output; /* [n_outputs]; infer fills dtype, rank, dim; NULL entry: output not wanted */
} hone_infer;

typedef struct hone_cost {
  double flops; /* a multiply-accumulate counts 2; an elementwise operation 1 an element */
  double macs;  /* multiply-accumulates alone */
  double bytes; /* read + written, each tensor once; < 0: let hone sum inputs and outputs */
} hone_cost;

/* One execution of an operator's reference. All tensors are row-major and dense, on the host. */
typedef struct hone_call hone_call;
struct hone_call {
  const hone_node *node;
  uint32_t n_inputs, n_outputs;
  const hone_tensor *const *input; /* NULL entry: optional input left out */
  hone_tensor *const *output;      /* NULL entry: not wanted. data is set when infer gave all dimensions, else
                                      NULL:      then call alloc_output */
  /* Sets output[i]'s descriptor and memory (for shapes that depend on data). For strings the bytes of the
   * elements come from scratch_keep. */
  hone_status (*alloc_output)(hone_call *call, uint32_t i, const hone_tensor_desc *desc, hone_error *error);
  /* Uninitialised memory, 64-byte aligned, until the call returns; NULL when the byte budget is spent. */
  void *(*scratch)(hone_call *call, size_t bytes);
  /* The same, but alive until the run ends (string bytes). */
  void *(*scratch_keep)(hone_call *call, size_t bytes);
  /* True when the run was cancelled or its deadline has passed: long loops ask now and then and return
   * HONE_ERROR_CANCELLED. */
  bool (*stopped)(hone_call *call);
  void *impl; /* the runtime's own */
};

enum {
  HONE_OP_RANDOM = 1u << 0, /* two equal calls may differ: never folded, never merged */
  HONE_OP_DATA_DEPENDENT =
      1u << 1,                  /* output dimensions depend on input values even when all shapes are known */
  HONE_OP_VIEW = 1u << 2,       /* output 0 has input 0's elements in the same row-major order (Reshape...) */
  HONE_OP_CONTROL = 1u << 3,    /* If, Loop, Scan: run by the runtime, no reference */
  HONE_OP_MOVE = 1u << 4,       /* moves elements, computes nothing */
  HONE_OP_POINTWISE = 1u << 5,  /* each output element depends on the broadcast input elements at its place;
                                   its  reference is called with slices of large tensors, by several threads */
  HONE_OP_SHAPE_ONLY = 1u << 6, /* reads its inputs' dimensions, never their elements (Shape, Size) */
  HONE_OP_CODES = 1u << 7,      /* reads quantised numbers */
  HONE_OP_ITEMS = 1u << 8       /* its inputs and outputs may be sequences and optionals */
};

/* The product that an operator is, with the inputs and attributes that ONNX gives it. Products take
 * epilogues, may be computed in narrower types, and have their weights in input 1. */
typedef enum hone_product {
  HONE_PRODUCT_NONE = 0,
  HONE_PRODUCT_CONV,
  HONE_PRODUCT_CONV_TRANSPOSE,
  HONE_PRODUCT_GEMM,
  HONE_PRODUCT_MATMUL
} hone_product;

/* Where an operator's channels may lie. Without any, its tensors are row-major. */
enum {
  HONE_LAST_ALLOWED = 1u << 0, /* input 0 and the outputs may be channels-last */
  HONE_LAST_WANTED = 1u << 1,  /* and it is faster so: its neighbours should be, too */
  HONE_LAST_ALL = 1u << 2      /* all inputs may be, not only input 0 (others are weights, scales) */
};

/* What an operator between DequantizeLinear and QuantizeLinear reads, when it can work on the codes. */
typedef enum hone_codes {
  HONE_CODES_NONE = 0,
  HONE_CODES_ONE,     /* x */
  HONE_CODES_WEIGHTS, /* x, constant weights, maybe a bias */
  HONE_CODES_SAME     /* x, in the codes of y */
} hone_codes;

/* An operator on 8-bit codes as ONNX's float operator between DequantizeLinear and QuantizeLinear, with the
 * same attributes. An operand is three inputs in a row: codes, scale, zero point (may be left out). */
typedef struct hone_float_form {
  const struct hone_op_desc *op;
  int16_t opset;           /* as which it is meant; 0: attribute `opset` of the node says it */
  uint8_t plain;           /* inputs before the first operand that go to the operator as they are */
  uint8_t first, operands; /* input where the first operand begins, and their number; 0: all that follow */
  uint8_t y;               /* input with the scale of the output; its zero point follows */
} hone_float_form;

/* A tensor of codes that an operator reads or makes, and the inputs with its scales and zero points. */
enum { HONE_CODES_RESULT = 255 };
typedef enum hone_codes_axis {
  HONE_CODES_AXIS_NONE = 0,  /* one scale for all */
  HONE_CODES_AXIS_ATTRIBUTE, /* one for each index of the dimension that attribute `axis` names, else 1 */
  HONE_CODES_AXIS_FIRST,     /* of dimension 0 */
  HONE_CODES_AXIS_ROW,       /* of the last but one */
  HONE_CODES_AXIS_COLUMN     /* of the last one; of the first one where attribute `transB` is set */
} hone_codes_axis;
typedef struct hone_codes_port {
  uint8_t tensor;      /* an input, or HONE_CODES_RESULT: output 0 */
  uint8_t scale, zero; /* inputs; both may be left out by a node; scale 0 ends a list */
  uint8_t axis;        /* hone_codes_axis */
} hone_codes_port;

#define HONE_VARIADIC 0xffffffffu
#define HONE_TYPES(d) ((d) < 32 ? 1u << ((d)&31) : 0u)

typedef struct hone_op_desc {
  uint32_t struct_size, abi;
  const char *domain, *op_type;
  int16_t since; /* first opset (of the domain) whose definition is implemented */
  int16_t
      until; /* last opset for which this definition is valid; 0: not changed up to the newest known (28) */
  uint32_t flags;
  uint32_t min_inputs, max_inputs, min_outputs, max_outputs; /* HONE_VARIADIC: no upper bound */
  uint32_t types; /* dtypes of input 0 (or of the output where there is no input): HONE_TYPES bits; 0: any */
  const hone_attr_desc *attrs; /* NULL: none */
  hone_status (*infer)(const hone_infer *io, hone_error *error);
  void (*cost)(const hone_infer *io,
               hone_cost *cost); /* NULL: 1 FLOP an output element; MOVE and VIEW: none */
  hone_status (*reference)(hone_call *call, hone_error *error);
  /* Bit i: input i is small, and its values must be known before a step can be planned: axes, sizes, widths,
   * repeats. Such inputs stay in the host's memory, also when an accelerator does the rest. */
  uint32_t host_inputs;
  /* Of data-dependent operators, or NULL: like infer, with all inputs' dimensions known, but an output
   * dimension that depends on elements becomes the most that it can be. Accelerators then make room for that,
   * and tactics tell the true dimensions: they begin their workspace with 8 numbers (i64) for each of the
   * first 4 outputs, one more than the dimension, or 0 where it is that bound. */
  hone_status (*most)(const hone_infer *io, hone_error *error);

  /* What makes an operator fast without a tactic of its own, or lets tactics and their neighbours gain. */
  const struct hone_function *function; /* the elementwise function that it is, or NULL */
  hone_product product;
  uint32_t layouts; /* HONE_LAST bits */
  hone_codes codes;
  const char *on_codes;              /* the anchor of steps that compute it from codes; NULL: none */
  const hone_float_form *float_form; /* what it is without codes; NULL: nothing, or floats already */
  const hone_codes_port *ports; /* what its codes mean, where float_form does not say it; NULL: nothing */
  const char *example;          /* dimensions of the inputs to try it on: "2x8x16;16"; NULL: none are known */
} hone_op_desc;

/* ---------------------------------------------------------------- steps */

/* Elementwise functions: instructions of pointwise programs, and activations of epilogues.
 * x, y, z are operands, alpha and beta immediates. */
typedef enum hone_pw_op {
  HONE_PW_NONE = 0,
  HONE_PW_LOAD,  /* dst <- input[a] */
  HONE_PW_STORE, /* output[dst] <- register a */
  HONE_PW_CONST, /* alpha */
  HONE_PW_ADD,
  HONE_PW_SUB,
  HONE_PW_MUL,
  HONE_PW_DIV,
  HONE_PW_MIN,
  HONE_PW_MAX,
  HONE_PW_POW,
  HONE_PW_PRELU,
  HONE_PW_EQ,
  HONE_PW_LT,
  HONE_PW_LE,
  HONE_PW_GT,
  HONE_PW_GE,
  HONE_PW_AND,
  HONE_PW_OR,
  HONE_PW_XOR,
  HONE_PW_WHERE, /* x != 0 ? y : z */
  HONE_PW_NOT,
  HONE_PW_NEG,
  HONE_PW_ABS,
  HONE_PW_SQRT,
  HONE_PW_RECIPROCAL,
  HONE_PW_EXP,
  HONE_PW_LOG,
  HONE_PW_ERF,
  HONE_PW_TANH,
  HONE_PW_SIGMOID,
  HONE_PW_FLOOR,
  HONE_PW_CEIL,
  HONE_PW_ROUND,
  HONE_PW_SIGN,
  HONE_PW_RELU,
  HONE_PW_CLIP,        /* min(max(x, alpha), beta) */
  HONE_PW_LEAKYRELU,   /* x < 0 ? alpha x : x */
  HONE_PW_ELU,         /* x < 0 ? alpha (exp(x) - 1) : x */
  HONE_PW_SELU,        /* beta (x <= 0 ? alpha exp(x) - alpha : x) */
  HONE_PW_CELU,        /* max(0, x) + min(0, alpha (exp(x / alpha) - 1)) */
  HONE_PW_HARDSIGMOID, /* clip(alpha x + beta, 0, 1) */
  HONE_PW_HARDSWISH,   /* x clip(alpha x + beta, 0, 1); ONNX: alpha 1/6, beta 0.5 */
  HONE_PW_SILU,        /* x sigmoid(alpha x) */
  HONE_PW_GELU_ERF,    /* 0.5 x (1 + erf(x / sqrt 2)) */
  HONE_PW_GELU_TANH,   /* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
  HONE_PW_SOFTPLUS,    /* log(1 + exp(x)) */
  HONE_PW_SOFTSIGN,    /* x / (1 + |x|) */
  HONE_PW_MISH,        /* x tanh(softplus(x)) */
  HONE_PW_COUNT
} hone_pw_op;

typedef struct hone_pw_instr {
  uint8_t op;      /* hone_pw_op */
  uint8_t dst;     /* register; STORE: output index */
  uint8_t a, b, c; /* registers; LOAD: a is the input index */
  float alpha, beta;
} hone_pw_instr;

/* The elementwise function that an operator is of f32 (or bool) operands. Such nodes join epilogues and
 * pointwise programs, on every device. */
typedef struct hone_function {
  hone_pw_op op;
  uint32_t operands;        /* of its inputs, the first; 0: all of them, op is applied from left to right */
  const char *alpha, *beta; /* attributes (floats) with the immediates, or NULL */
  float alpha_otherwise, beta_otherwise; /* where there is no such attribute */
  /* NULL, or for what the above cannot say: may change op, alpha and beta of a node, which are set. False:
   * the node is no such function. */
  bool (*read)(const hone_infer *io, hone_pw_instr *instr);
} hone_function;

#define HONE_PW_REGISTERS 16

/* A pointwise program. All arithmetic is f32; bool tensors are loaded as 0.0 / 1.0 and stored as x != 0.
 * Inputs broadcast to the output's dimensions as in ONNX; all outputs have the same dimensions and layout. */
typedef struct hone_pw_program {
  uint32_t n_instr;
  const hone_pw_instr *instr;
} hone_pw_program;

/* Epilogue of an anchor: applied to its result in order, before it is stored. */
typedef enum hone_epilogue_kind {
  HONE_EPI_BIAS = 1, /* + input[i], one value a channel (dimension 1; last dimension for Gemm/MatMul) */
  HONE_EPI_SCALE,    /* * input[i], one value a channel */
  HONE_EPI_ADD,      /* + input[i], same dimensions and layout as the output (residual) */
  HONE_EPI_MUL,      /* * input[i], same dimensions and layout as the output */
  HONE_EPI_ACT,      /* act(x, alpha, beta) */
  HONE_EPI_QUANTIZE, /* to the output's dtype by its descriptor's quantisation */
  HONE_EPI_CAST      /* to the output's dtype */
} hone_epilogue_kind;

typedef struct hone_epilogue {
  hone_epilogue_kind kind;
  hone_pw_op act;
  uint32_t input; /* index into the step's inputs, for BIAS, SCALE, ADD, MUL */
  float alpha, beta;
} hone_epilogue;

#define HONE_MAX_EPILOGUE 6

/* A tensor as a step sees it: descriptor, and the bytes when it is a constant (row-major unless the
 * descriptor says otherwise). */
typedef struct hone_step_tensor {
  hone_tensor_desc desc;
  const void *constant; /* NULL: known only at run time */
} hone_step_tensor;

/* The arithmetic that a step may use, from the narrowest licence to the widest; each includes the ones
 * before. Tactics compare: `s->math >= HONE_MATH_F32`. */
typedef enum hone_math {
  HONE_MATH_STRICT =
      0,          /* f32 products and sums of the operator's own formula, in any order (levels 0 and 1) */
  HONE_MATH_F32,  /* other formulas with an error of f32's order, norm-wise: Winograd;
                     numbers below 2^-126 (denormals) count as zero in products (level 2, the default) */
  HONE_MATH_FAST, /* f32 operands cut to two bf16 parts, 16 bits; Strassen's method (level 3) */
  HONE_MATH_TF32, /* operands of matrix products rounded to 10 bits, sums in f32 (precision tf32 or fp16; fp16
                     on the CPU: sums of few products in f16, and of these in f32) */
  HONE_MATH_BF16, /* operands of matrix products rounded to bf16, sums in f32 (precision bf16) */
  HONE_MATH_FP8   /* operands of matrix products, over a scale for each, rounded to 4 bits (e4m3), sums in f32
                     (precision fp8 at level 3) */
} hone_math;

/* One unit of execution, chosen by lowering: an anchor operator with an epilogue, or a pointwise program. */
typedef struct hone_step {
  uint32_t struct_size, abi;
  const char *anchor; /* operator type ("Conv"; of other domains than ONNX's own "domain.Type"), "Pointwise",
                         "Reformat" or a fused pattern's name */
  const char *name;   /* for reports: the anchor node's name */
  const hone_node *node;    /* attributes of the anchor; NULL for Pointwise and Reformat */
  uint32_t n_inputs;        /* the anchor's own inputs first, then those that the epilogue adds */
  uint32_t n_anchor_inputs; /* a left-out optional input has dtype NONE */
  const hone_step_tensor *input;
  uint32_t n_outputs;
  const hone_step_tensor *output;
  uint32_t n_epilogue;
  hone_epilogue epilogue[HONE_MAX_EPILOGUE];
  const hone_pw_program *program; /* Pointwise only */
  hone_cost cost;
  hone_math math;
  uint32_t n_parts; /* "ConvChain", "SqueezeExcite": the steps that it stands for, in order; 0 for others */
  const struct hone_step_part *part;
  bool own_only; /* for prepack: what follows `shared` is there already, in a blob that plans have in
                    common; only the bytes before it are wanted, and constants in `packed` have none */
} hone_step;

#define HONE_PART_CHAINED 0xffffffffu

/* A part of a chain: its own step, one of whose inputs is what the part before gives (it never reaches
 * memory), and where its inputs stand among those of the whole. */
typedef struct hone_step_part {
  const hone_step *step;
  const uint32_t *input; /* [step->n_inputs] indices of the whole's inputs, or HONE_PART_CHAINED */
} hone_step_part;

/* ---------------------------------------------------------------- tactics */

enum {                            /* hone_machine.isa */
       HONE_ISA_AVX2 = 1u << 0,   /* with FMA and F16C */
       HONE_ISA_AVX512 = 1u << 1, /* F, BW, DQ, VL */
       HONE_ISA_AVX512VNNI = 1u << 2,
       HONE_ISA_AVX512BF16 = 1u << 3,
       HONE_ISA_AMX = 1u << 4,    /* tiles of bf16 and int8, permitted by the operating system */
       HONE_ISA_AVXVNNI = 1u << 5 /* VNNI beside AVX2; not told where AVX-512 is used */
};

enum { /* hone_machine.libraries */
       HONE_LIB_CUDNN = 1u << 0,
       HONE_LIB_CUBLASLT = 1u << 1
};

/* What cost models may know of the machine. */
typedef struct hone_machine {
  const char *device; /* "cpu" or "cuda" */
  uint32_t isa;       /* HONE_ISA_*, after HONE_CPU's mask */
  uint32_t threads;   /* that a run will use */
  double peak_flops;  /* f32, all threads, FLOP/s */
  double dram_bytes;  /* per second, all threads */
  double cache_bytes; /* last-level cache bandwidth per second, all threads */
  size_t l1, l2, l3;  /* bytes; l1 and l2 per core */
  /* Accelerators: */
  uint32_t arch;       /* compute capability: 80, 90...; 0 on CPUs */
  uint32_t processors; /* multiprocessors */
  size_t shared_bytes; /* shared memory that a block can have */
  double half_flops;   /* f16 and bf16 matrix products with f32 sums, FLOP/s */
  double tf32_flops;
  double launch_s;    /* from one small kernel to the next that waits for it, in a captured segment */
  uint32_t libraries; /* HONE_LIB_*: those that were found */
  bool emulated;      /* a program stands in for the chip: right answers, and times that say nothing */
  bool mesh;          /* CPU: l3 is shared by many cores, each of which draws little from it */
} hone_machine;

/* Why a tactic does not take a step. */
typedef struct hone_reason {
  char text[160];
} hone_reason;

typedef struct hone_tactic_need {
  size_t blob_bytes;      /* prepacked constants, kept with the plan */
  size_t workspace_bytes; /* scratch of one run, shared between steps, 64-byte aligned */
  /* Bit i: the bytes of constant input i are read by prepack alone, never by accepts, cost, need or run,
   * which may only look at whether it is constant. Weights that are in the blob: hone then lets go of the
   * originals. */
  uint32_t packed;
  uint32_t bytewise; /* bit i: constant input i is read as bytes (memcpy), so that any alignment will do */
} hone_tactic_need;

/* The units that do a step's products, each with a measured roof of its own: name in the code, word in facts,
 * types of operands and sums (NONE: those of the step's elements; tf32 is stored as f32). */
#define HONE_ARITHMETICS(X)                                                                                  \
  X(OF_DTYPE, "", NONE, NONE) /* as the step's element type says */                                          \
  X(F32, "f32", F32, F32)                                                                                    \
  X(TF32, "tf32", F32, F32)                                                                                  \
  X(BF16, "bf16", BF16, F32)                                                                                 \
  X(F16, "f16", F16, F32)                                                                                    \
  X(INT8, "int8", I8, I32)                                                                                   \
  X(UNKNOWN, "unknown", NONE, NONE) /* a library chooses, and does not say: nothing is compared with a roof  \
                                     */                                                                      \
  X(INT8_VECTORS, "int8 vectors", I8, I32) /* products of bytes that tiles (AMX) cannot make */

typedef enum hone_arithmetic {
#define X(id, word, operand, sum) HONE_ARITHMETIC_##id,
  HONE_ARITHMETICS(X)
#undef X
} hone_arithmetic;

/* What one run of a step really computes, where that is not what its operator's formula counts. */
typedef struct hone_work {
  /* Operations of the algorithm, its transforms included, whole tiles counted where it computes whole tiles.
   * Lanes that a kernel pads to fill a register are waste, not work. */
  double flops;
  hone_arithmetic arithmetic;
  bool split; /* every product of the formula is a sum of several of this narrower arithmetic */
} hone_work;

/* One run of a step. */
typedef struct hone_step_run {
  const hone_step *step;
  /* [n_inputs]; constants included; NULL where left out. Aligned to their elements, and no more: they may be
   * a caller's memory. */
  const void *const *in;
  void *const *out; /* [n_outputs], 64-byte aligned, as are blob and workspace */
  const void *blob;
  void *workspace;
  uint32_t threads;
  /* Calls fn(arg, task, thread) for task = 0..tasks-1 on up to `threads` threads; thread < threads identifies
   * the worker, for per-thread workspace. Returns when all are done. */
  void (*parallel)(void *pool, int64_t tasks, void (*fn)(void *arg, int64_t task, uint32_t thread),
                   void *arg);
  void *pool;
  bool flush; /* of a product on the host (HONE_MATH_F32): numbers below 2^-126 count as zero; the backend has
                 set the threads' mode */
  const void *shared; /* the blob from that byte on that the tactic's `shared` says, wherever it is; NULL:
                         behind the rest of the blob */
} hone_step_run;

typedef struct hone_tactic_desc {
  uint32_t struct_size, abi;
  const char *name;   /* "conv_gemm_avx512": what reports and HONE_TACTICS show */
  const char *device; /* "cpu", "cuda" */
  const char *anchor; /* the step anchor it implements */
  int32_t version;    /* raise when results or packed blobs change: saved plans name it */
  /* True when it can run the step exactly as described (layouts, dtypes, epilogue); else says why not.
   * Depends on nothing but its arguments. */
  bool (*accepts)(const hone_step *step, const hone_machine *machine, hone_reason *why);
  double (*cost)(const hone_step *step, const hone_machine *machine); /* predicted seconds */
  hone_status (*need)(const hone_step *step, const hone_machine *machine, hone_tactic_need *need,
                      hone_error *error);
  /* Fills the plan's blob, all zeros before, from the step's constants; NULL: no blob. */
  hone_status (*prepack)(const hone_step *step, const hone_machine *machine, void *blob, hone_error *error);
  /* Computes; allocates nothing, takes no lock. */
  hone_status (*run)(const hone_step_run *run, hone_error *error);
  /* `work` comes with the FLOPs of step->cost and OF_DTYPE. NULL: so it is. For steps that it accepts. */
  void (*work)(const hone_step *step, const hone_machine *machine, hone_work *work);
  /* From which byte on (a multiple of 64) the blob says nothing of shapes: what is there follows from the
   * step's constants, the attributes, the epilogue's form and *key (0 unless it is set), so that plans of the
   * same model for other shapes may have it in common. prepack then obeys step->own_only, and run reads it at
   * hone_step_run.shared. 0, or no function: nothing is shared. For steps that it accepts. */
  size_t (*shared)(const hone_step *step, const hone_machine *machine, uint64_t *key);
  /* The input over whose bytes output i may be written: run then finds both at one address. -1, or no
   * function: none. For steps that it accepts. */
  int32_t (*over)(const hone_step *step, uint32_t i);
} hone_tactic_desc;

/* ---------------------------------------------------------------- patterns */

typedef struct hone_match hone_match; /* a place where a pattern's nodes were found */

/* Node bound to the k-th line of the pattern text. */
HONE_API const hone_node *hone_match_node(const hone_match *match, uint32_t k);
/* Value bound to a %name of the pattern: descriptor, and constant bytes (or NULL). False: no such name or
 * unbound. */
HONE_API bool hone_match_value(const hone_match *match, const char *name, hone_tensor_desc *desc,
                               const void **constant);

/* Takes the attributes of the operator that a pattern makes. */
typedef struct hone_attr_sink {
  void *self;
  void (*set_int)(void *self, const char *name, int64_t value);
  void (*set_float)(void *self, const char *name, float value);
  void (*set_string)(void *self, const char *name, const char *value);
  void (*set_ints)(void *self, const char *name, const int64_t *value, size_t count);
  void (*set_floats)(void *self, const char *name, const float *value, size_t count);
} hone_attr_sink;

/* A fused pattern: a small graph in text, one node a line ("%y = Sigmoid(%x)"), that lowering replaces by one
 * step. The last line is the root; every inner value must have no other reader. Several spellings of the same
 * function stand in one text, separated by lines "or". Behind a line may stand conditions:
 * "%y = Conv(%x, %w) where group else 1 == dim(%x, 1) and dims(%w) == [?, 1, 3, 3]". A bare word is an
 * attribute of the line's node, `else` says what counts where it is absent; attr(%y, group) is one of the
 * node that makes %y; dim, dims, rank, type and value (of a constant) ask of values.
 * docs/guide/custom-operators.md has the grammar. */
typedef struct hone_pattern_desc {
  uint32_t struct_size, abi;
  const char *name; /* anchor name of the step that it makes ("Gelu"; "domain.Type" of another domain) */
  const char *text;
  const char *inputs; /* names of the values that become the step's inputs, in order: "%x %beta" */
  /* Extra condition; NULL: always. Says why not. */
  bool (*accepts)(const hone_match *match, hone_reason *why);
  /* When the fused form is one pointwise function of its first input: that function and its immediates.
   * Lowering can then place it in epilogues and pointwise programs. NULL: a step of its own with anchor
   * `name`. */
  bool (*pointwise)(const hone_match *match, hone_pw_op *op, float *alpha, float *beta);
  /* Attributes of the operator `name` of which the step is one execution; NULL: none. The operator must be
   * registered: its newest definition counts, and its reference is what the step falls back to. */
  void (*attrs)(const hone_match *match, const hone_attr_sink *sink);
  /* The same in text, one a line: "strides = attr(%c, strides) else [1, 1]", "beta = value(%b)", with the
   * terms that conditions are made of; set after `attrs` was called. A match is none where one is not known.
   * NULL: none. */
  const char *settings;
} hone_pattern_desc;

/* ---------------------------------------------------------------- plugins */

/* What a plugin adds. Lists are [n_...]; a list of none may be NULL. */
typedef struct hone_plugin {
  uint32_t struct_size, abi;
  const char *name;    /* "swish": letters, digits, '-' and '_'; at most 60 of them */
  const char *version; /* "1.0.0" */
  const char *about;   /* what it is for, in a line */
  uint32_t n_ops, n_tactics, n_patterns;
  const hone_op_desc *const *op;
  const hone_tactic_desc *const *tactic;
  const hone_pattern_desc *const *pattern;
} hone_plugin;

/* The one function that a plugin has for hone. It is called when the plugin is loaded (hone/plugins.h), first
 * in a process of its own, and gets the ABI of that hone. NULL: the plugin does not work with it. */
HONE_API const hone_plugin *hone_plugin_entry(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif
