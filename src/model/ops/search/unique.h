/* What com.microsoft.Unique tells the operator of ONNX that does its work. */
#ifndef HN_MODEL_OPS_UNIQUE_H
#define HN_MODEL_OPS_UNIQUE_H

/* An attribute that no model can give: not 0 where every NaN of a vector is an element of its own. */
#define HN_UNIQUE_NAN_APART "NaN apart"

#endif
