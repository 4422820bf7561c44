/* Upsample: nearest and linear over the spatial axes. */
#include "backends/cpu/common/resize_step.h"

const struct hone_tactic_desc hn_tactic_upsample = {HONE_DESC_HEAD(hone_tactic_desc),
                                                    .name = "upsample",
                                                    .device = "cpu",
                                                    .anchor = "Upsample",
                                                    .version = 1,
                                                    .accepts = hn_resize_step_accepts,
                                                    .cost = hn_resize_step_cost,
                                                    .need = hn_resize_step_need,
                                                    .prepack = hn_resize_step_prepack,
                                                    .run = hn_resize_step_run};
