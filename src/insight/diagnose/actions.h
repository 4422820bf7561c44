/* What to type, in the words of the tool whose profile it is. A rule names an action; actions.def says what
 * that is for trtexec, ONNX Runtime and the others. */
#ifndef HN_INSIGHT_ACTIONS_H
#define HN_INSIGHT_ACTIONS_H

#include <hone/insight.h>

/* Tools whose profiles hone knows, and how meta.tool may begin then. ANY stands for all that have no row of
 * their own. */
#define HN_TOOLS(X)                                                                                          \
  X(HONE, "hone")                                                                                            \
  X(TRTEXEC, "trtexec tensorrt")                                                                             \
  X(ORT, "onnxruntime onnx_runtime ort")                                                                     \
  X(NSYS, "nsys nsight_systems")                                                                             \
  X(NCU, "ncu nsight_compute")                                                                               \
  X(PYTORCH, "pytorch kineto")                                                                               \
  X(ASCEND, "ascend msprof")                                                                                 \
  X(OPENVINO, "openvino")                                                                                    \
  X(ONEDNN, "onednn")                                                                                        \
  X(ANY, "")

typedef enum hn_tool {
#define X(id, word) HN_TOOL_##id,
  HN_TOOLS(X)
#undef X
} hn_tool;

#define HN_ACTIONS(X)                                                                                        \
  X(OPTIMIZE) /* fuse, fold, remove */                                                                       \
  X(EXPLAIN)  /* why was something not fused? */                                                             \
  X(TUNE)     /* measure which kernels are fastest */                                                        \
  X(TIMELINE) /* look at gaps and copies in time */                                                          \
  X(LAYER)    /* look at one operator, {layer} */                                                            \
  X(TYPE)     /* look at the operators of one type, {layer} */                                               \
  X(MEASURE)  /* measure again, longer */                                                                    \
  X(LONGER)   /* watch it for minutes */                                                                     \
  X(SHORTER)  /* record less: the record overflowed */                                                       \
  X(MARK)     /* record inference alone, or mark it */                                                       \
  X(RECORD)   /* record the layers or kernels, too */                                                        \
  X(PAUSES)   /* who stops the process */                                                                    \
  X(FAULTS)   /* who maps pages */                                                                           \
  X(PAGING)   /* is memory short? */                                                                         \
  X(THREADS)  /* {n} threads */                                                                              \
  X(BATCH)    /* {n} samples at once */                                                                      \
  X(REBATCH)  /* the same, of a model that fixes its batch */                                                \
  X(STREAMS)  /* {n} independent queues */                                                                   \
  X(OVERLAP)  /* copy the next input while this one is computed */                                           \
  X(PIN)      /* page-locked host memory */                                                                  \
  X(NARROW)   /* inputs of fewer bytes, converted on the device */                                           \
  X(MERGE)    /* several copies as one */                                                                    \
  X(RESIDENT) /* leave data on the device */                                                                 \
  X(GRAPH)    /* record launches once, replay them */                                                        \
  X(ASYNC)    /* fewer waits of the host */                                                                  \
  X(EXCHANGE) /* communication of devices beside computation */                                              \
  X(FALLBACK) /* which operators fell back to the host */                                                    \
  X(LAYOUT)   /* one layout from edge to edge */                                                             \
  X(CHANNELS) /* kernels for few channels */                                                                 \
  X(FP16)                                                                                                    \
  X(BF16)                                                                                                    \
  X(INT8)                                                                                                    \
  X(SPARSITY)    /* 2:4 */                                                                                   \
  X(CALIBRATE)   /* quantise again, mixed precision */                                                       \
  X(QUANTISE)    /* write the model in 8 bits anew */                                                        \
  X(DEVICE)      /* what this machine gives */                                                               \
  X(SHAPES)      /* fixed shapes */                                                                          \
  X(PREPROCESS)  /* input preparation on the device, in the first layer */                                   \
  X(POSTPROCESS) /* decoding on the device, beside the next inference */                                     \
  X(CLOCKS)      /* why is the clock low? */                                                                 \
  X(NEIGHBOURS)  /* who else uses this machine? */                                                           \
  X(WHEN_QUIET)  /* wait for quiet, then measure */                                                          \
  X(ROOFS)       /* measure the machine's roofs again */

typedef enum hn_action {
#define X(id) HN_DO_##id,
  HN_ACTIONS(X)
#undef X
      HN_ACTION_COUNT
} hn_action;

/* What a row of actions.def may ask of the profile. */
#define HN_CONDITIONS(X)                                                                                     \
  X(ALWAYS)                                                                                                  \
  X(CPU)                                                                                                     \
  X(GPU)       /* or another accelerator */                                                                  \
  X(TIMED)     /* it has a time line */                                                                      \
  X(UNTIMED)   /* sums only */                                                                               \
  X(SHAPED)    /* it says what shapes or types the layers have */                                            \
  X(UNSHAPED)  /* only what they are called and how long they take */                                        \
  X(NO_STACKS) /* it was recorded without the program's call stacks */

typedef enum hn_condition {
#define X(id) HN_WHEN_##id,
  HN_CONDITIONS(X)
#undef X
} hn_condition;

/* Whose profile this is, by meta.tool. NULL (not recorded): HONE. */
hn_tool hn_tool_of(const char *tool);
/* Row `index` (0, 1, ...) of an action for a tool with {placeholders}, of those whose condition is among
 * `hold` (bits 1u << hn_condition), and what it is for; NULL: no more. */
const char *hn_action_text(hn_tool tool, hn_action action, unsigned hold, int index, hone_language language,
                           hone_purpose *purpose);

#endif
